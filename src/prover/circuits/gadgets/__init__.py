"""Gadgets of the field's circuits (bellperson, neptune), each recorded as a template in their allocation order."""
