import { relative } from "node:path/posix";
import { ROOMS, type Room } from "./rooms.ts";

/** The linter's configuration that says, for each room, which files its own may not import. */
export function importRules(rooms: readonly Room[] = ROOMS) {
  return { overrides: rooms.map((room) => overrideOf(room, rooms)) };
}

function overrideOf({ path, uses }: Room, rooms: readonly Room[]) {
  const closed = rooms.filter((other) => other.path !== path && !uses.includes(other.path));
  const group = closed.map((other) => `${below(relative(path, other.path))}/*.ts`);
  const open = uses.length === 0 ? "imports nothing of ours" : `may import only from ${[...new Set(uses)].join(", ")}`;
  const options = { patterns: [{ group, message: `${path} ${open} (scripts/house/rooms.ts)` }] };
  return {
    includes: [`src/${path}/*.ts`],
    linter: { rules: { style: { noRestrictedImports: { level: "error", options } } } },
  };
}

function below(path: string): string {
  return path.startsWith(".") ? path : `./${path}`;
}
