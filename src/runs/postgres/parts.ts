import { randomUUID } from "node:crypto";
import type { ByteSource } from "../../platform/bytes.ts";
import type { Database } from "./database.ts";

/** How large a piece is kept, in bytes. */
const PIECE_BYTES = 256 * 1024;
const PIECES_AT_ONCE = 4;

/** Keeps a part of a run in place of the one before, which is there until the last piece of the new one is kept. */
export async function keepPart(
  database: Database,
  runId: string,
  name: string,
  pieces: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
): Promise<void> {
  const version = randomUUID();
  let count = 0;
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  const write = async (): Promise<void> => {
    if (bytes === 0) return;
    await database.rows("insert into targeting_mcp.piece values ($1, $2, $3, $4) on conflict do nothing", [
      ...[runId, version, count, Buffer.concat(waiting)],
    ]);
    count += 1;
    waiting = [];
    bytes = 0;
  };
  for await (const piece of pieces) {
    const taken = typeof piece === "string" ? Buffer.from(piece) : piece;
    waiting.push(taken);
    bytes += taken.length;
    if (bytes >= PIECE_BYTES) await write();
  }
  await write();
  await database.rows(
    `with now as (
       insert into targeting_mcp.part values ($1, $2, $3) on conflict (run, name) do update set version = excluded.version
     ), changed as (update targeting_mcp.run set changes = changes + 1 where id = $1)
     delete from targeting_mcp.piece p using targeting_mcp.part before
       where before.run = $1 and before.name = $2 and before.version <> $3 and p.run = $1 and p.version = before.version`,
    [runId, name, version],
  );
}

/** Opens a part of a run; empty where none was kept. */
export function partOf(database: Database, runId: string, name: string): ByteSource {
  return async function* () {
    const [now] = await database.rows<{ version: string }>(
      "select version from targeting_mcp.part where run = $1 and name = $2",
      [runId, name],
    );
    if (now === undefined) return;
    for (let from = 0; ; from += PIECES_AT_ONCE) {
      const rows = await database.rows<{ bytes: Buffer }>(
        "select bytes from targeting_mcp.piece where run = $1 and version = $2 and n >= $3 order by n limit $4",
        [runId, now.version, from, PIECES_AT_ONCE],
      );
      for (const { bytes } of rows) yield bytes;
      if (rows.length < PIECES_AT_ONCE) return;
    }
  };
}
