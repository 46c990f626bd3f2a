"""What the numbers mean: phases, gap, attribution, findings, forecasts; pure functions over events and snapshots."""

from cuzktui.analysis.report import JobReport, analyse, analyse_job, report_of

__all__ = ["JobReport", "analyse", "analyse_job", "report_of"]
