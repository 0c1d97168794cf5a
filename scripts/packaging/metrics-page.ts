import { instrument } from "../../src/observe/instrument.ts";
import { tableOf } from "./markdown.ts";

/** Returns docs/reference/metrics.md: every metric of `/metrics`, in the form of its Prometheus description. */
export function metricsPage(): string {
  const text = instrument("", () => 0).text();
  const rows = [...text.matchAll(/^# HELP (\w+) (.*)\n# TYPE \w+ (\w+)$/gm)].map(([, name, help = "", type = ""]) => [
    `\`${name}\``,
    type,
    help,
  ]);
  return [
    "# Metrics",
    "Generated from the code by `npm run docs`. `TARGETING_MCP_METRICS=on` serves these metrics for Prometheus at " +
      "`/metrics`. No label names a caller, a targeting, an option or a key.",
    tableOf(["metric", "type", "meaning"], rows),
    "",
  ].join("\n\n");
}
