import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { tableOf } from "./markdown.ts";

/** docs/reference/commands.md: every command with its own flags, as the built command's help has them. */
export function commandsPage(): string {
  const usages = [...helpOf("help").matchAll(/^ {2}targeting-mcp (\S.*)$/gm)].map(([, usage = ""]) => usage);
  const commands = usages.map((usage) => helped(/^\[?(\w+)/.exec(usage)?.[1] ?? ""));
  return [
    "# Commands",
    "Generated from the code by `npm run docs`. Every command also takes the [settings](settings.md) as flags or " +
      "environment variables. `targeting-mcp COMMAND --help` shows the same in a terminal.",
    tableOf(
      ["command", "does"],
      commands.map(({ usage, meaning }) => [`\`${usage.replaceAll("|", "\\|")}\``, meaning.replaceAll("|", "\\|")]),
    ),
    "## Flags",
    tableOf(
      ["command", "flag", "meaning"],
      commands.flatMap(({ name, flags }) => flags.map(([flag, about]) => [`\`${name}\``, `\`${flag}\``, about])),
    ),
    "",
  ].join("\n\n");
}

function helped(name: string) {
  const help = helpOf("help", name);
  const [, usage = "", meaning = ""] = /Usage:\n {2}targeting-mcp (.*)\n {6}(.*)\n/.exec(help) ?? [];
  const [, own = ""] = /\nFlags of its own:\n((?: .*\n)+)/.exec(help) ?? [];
  const flags = [...own.matchAll(/^ {2}(--\S+)\n {6}(.*)$/gm)].map(
    ([, flag = "", about = ""]) => [flag, about] as const,
  );
  return { name, usage, meaning, flags };
}

function helpOf(...words: readonly string[]): string {
  const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
  return execFileSync(process.execPath, [main, ...words], { encoding: "utf8" });
}
