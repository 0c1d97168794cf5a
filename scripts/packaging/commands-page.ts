import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { tableOf } from "./markdown.ts";

/** Returns docs/reference/commands.md: every command with its own flags, from the help of the built command. */
export function commandsPage(): string {
  const usages = [...helpOf("help").matchAll(/^ {2}targeting-mcp (\S.*)$/gm)].map(([, usage = ""]) => usage);
  const commands = usages.map((usage) => helped(/^\[?(\w+)/.exec(usage)?.[1] ?? ""));
  return [
    "# Commands",
    "Generated from the code by `npm run docs`. Every command also takes the [settings](settings.md) as flags or " +
      "environment variables. `targeting-mcp COMMAND --help` shows the same in a terminal.",
    tableOf(
      ["command", "does"],
      commands.map(({ usage, meaning }) => [`\`${usage}\``, meaning]),
    ),
    "## Flags",
    tableOf(["command", "flag", "meaning"], flagRows(commands)),
    "",
  ].join("\n\n");
}

/** Returns a row for each flag. Commands that have the same flag with the same meaning share a row. */
function flagRows(commands: readonly ReturnType<typeof helped>[]): readonly (readonly string[])[] {
  const named = new Map<string, { readonly commands: string[]; readonly cells: readonly string[] }>();
  for (const { name, flags } of commands) {
    for (const [flag, about] of flags) {
      const row = named.get(`${flag} ${about}`);
      if (row === undefined)
        named.set(`${flag} ${about}`, { commands: [`\`${name}\``], cells: [`\`${flag}\``, about] });
      else row.commands.push(`\`${name}\``);
    }
  }
  return [...named.values()].map(({ commands: names, cells }) => [names.join(", "), ...cells]);
}

function helped(name: string) {
  const help = helpOf("help", name);
  const [, usage = "", meaning = ""] = /Usage:\n {2}targeting-mcp (.*)\n {6}(.*)\n/.exec(help) ?? [];
  const [, own = ""] = /\nFlags of this command:\n((?: .*\n)+)/.exec(help) ?? [];
  const flags = [...own.matchAll(/^ {2}(--\S+)\n {6}(.*)$/gm)].map(
    ([, flag = "", about = ""]) => [flag, about] as const,
  );
  return { name, usage, meaning, flags };
}

function helpOf(...words: readonly string[]): string {
  const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
  return execFileSync(process.execPath, [main, ...words], { encoding: "utf8" });
}
