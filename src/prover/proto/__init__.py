"""Generated gRPC code, committed; `make proto` makes it again and a test checks that it is current."""
