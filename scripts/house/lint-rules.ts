import { relative } from "node:path/posix";
import { EXCEPTIONS, LIMITS } from "./limits.ts";
import { ROOMS, type Room } from "./rooms.ts";

/** The linter's configuration that says, for each room, which files its own may not import, and how long code may be. */
export function lintRules(rooms: readonly Room[] = ROOMS) {
  const { fileLines, functionLines } = EXCEPTIONS;
  return {
    overrides: [
      ...rooms.map((room) => importsOf(room, rooms)),
      lengthsOf("**", { style: fileRule(LIMITS.fileLines), complexity: functionRule(LIMITS.functionLines) }),
      ...Object.entries(fileLines).map(([file, most]) => lengthsOf(file, { style: fileRule(most) })),
      ...Object.entries(functionLines).map(([file, most]) => lengthsOf(file, { complexity: functionRule(most) })),
    ],
  };
}

function importsOf(room: Room, rooms: readonly Room[]) {
  const { path, uses } = room;
  const closed = rooms.filter((other) => other.path !== path && !uses.includes(other.path));
  const group = closed.flatMap((other) => filesOf(other, below(relative(path, other.path))));
  const open = uses.length === 0 ? "imports nothing of ours" : `may import only from ${[...new Set(uses)].join(", ")}`;
  const options = { patterns: [{ group, message: `${path} ${open} (scripts/house/rooms.ts)` }] };
  return {
    includes: filesOf(room, `src/${path}`),
    linter: { rules: { style: { noRestrictedImports: { level: "error", options } } } },
  };
}

function filesOf({ isBrowser }: Room, folder: string): readonly string[] {
  return isBrowser ? [`${folder}/*.ts`, `${folder}/*.tsx`] : [`${folder}/*.ts`];
}

function lengthsOf(files: string, rules: object) {
  return { includes: [`src/${files}`], linter: { rules } };
}

function fileRule(maxLines: number) {
  return { noExcessiveLinesPerFile: { level: "error", options: { maxLines } } };
}

function functionRule(maxLines: number) {
  return { noExcessiveLinesPerFunction: { level: "error", options: { maxLines } } };
}

function below(path: string): string {
  return path.startsWith(".") ? path : `./${path}`;
}
