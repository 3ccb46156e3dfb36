// What an effect in flight reports, as one line.

/** Return usage aside, the tool, its file and the last message of a report. */
export function progressText(report) {
  const message = report.message ?? report.text ?? report.line ?? "";
  const work = [report.tool, report.file].filter(Boolean).join(" ");
  return [work, String(message).split("\n")[0]].filter(Boolean).join(" · ").slice(0, 300);
}
