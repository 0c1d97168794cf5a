// Checks the list of tools with the Inspector's CLI in strict mode, over both transports and in both protocol eras:
// `npm run inspect`. Needs the package registry.
import { inFolder, underNode24, withServer } from "./node24.ts";

const INSPECTOR = "@modelcontextprotocol/inspector@2.12.0";
const COMMAND = "dist/main.js";
const ERAS = ["legacy", "modern"] as const;

/**
 * Runs the Inspector, which prints the list on standard output and problems on standard error. Returns the problems;
 * undefined if there are none.
 */
async function findings(era: (typeof ERAS)[number], target: readonly string[]): Promise<string | undefined> {
  const options = ["--cli", "--strict", "--protocol-era", era, "--method", "tools/list"];
  const { code, stdout, stderr } = await underNode24(INSPECTOR, ["mcp-inspector", ...options, ...target]);
  const said = stderr.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("npm warn"));
  const listed = stdout.includes('"get_targeting"');
  if (code === 0 && said.length === 0 && listed) return undefined;
  return [`exit code ${code}`, ...said, ...(listed ? [] : ["it listed no tools"])].join("\n");
}

function tell(where: string, found: string | undefined): void {
  console.log(`${where}: ${found ?? "the Inspector finds nothing"}`);
  if (found !== undefined) process.exitCode = 1;
}

for (const era of ERAS) {
  await inFolder(async (folder) => {
    const settings = [`TARGETING_MCP_STATE_DIR=${folder}`, "TARGETING_MCP_LOG_LEVEL=silent"];
    const variables = settings.flatMap((setting) => ["-e", setting]);
    tell(`stdio, ${era}`, await findings(era, [...variables, "--", process.execPath, COMMAND]));
  });
  await withServer([COMMAND, "http", "--port", "0"], {}, async (url) => {
    tell(`http, ${era}`, await findings(era, [url]));
  });
}
