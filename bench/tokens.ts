// Counts the tokens (o200k) of the list of tools, and of the largest answer of each tool. It measures no times; a test
// checks the same figures.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import * as z from "zod";
import { largestAnswers, MAX_ANSWER_TOKENS } from "./largest-answers.ts";
import { PROGRAMS, startServer } from "./server-process.ts";

const listed = z.object({ result: z.object({ tools: z.array(z.looseObject({ outputSchema: z.unknown() })) }) });

const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-bench-"));
const server = startServer(PROGRAMS.ours, folder);
const { tools } = listed.parse(JSON.parse(await server.ask("tools/list"))).result;
await server.end();
await rm(folder, { recursive: true });

const without = tools.map(({ outputSchema, ...tool }) => tool);
console.log(`tokens of the list of ${tools.length} tools: ${countTokens(JSON.stringify(tools))} (at most 8500)`);
console.log(`tokens of the list without output schemas: ${countTokens(JSON.stringify(without))} (at most 6500)`);
for (const { tool, reads, tokens } of await largestAnswers()) {
  const most = reads ? MAX_ANSWER_TOKENS.reads : MAX_ANSWER_TOKENS.others;
  console.log(`tokens of the largest answer of ${tool}: ${tokens} (at most ${most})`);
}
