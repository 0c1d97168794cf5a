import { createHash, randomBytes } from "node:crypto";
import { RunStoreError } from "../backend/store.ts";
import type { Database } from "./database.ts";

const KEY_BYTES = 32;

/** The key that the processes of a store share; made at the first use. Throws a RunStoreError where they use another one. */
export async function keptSealKey(database: Database): Promise<Uint8Array> {
  const key = Buffer.from(await kept(database, "seal key", randomBytes(KEY_BYTES).toString("base64")), "base64");
  await checkSealKey(database, key);
  return key;
}

/** Throws a RunStoreError where the processes of a store use another key: they could not read each other's seals. */
export async function checkSealKey(database: Database, key: Uint8Array): Promise<void> {
  const hash = createHash("sha256").update(key).digest("hex");
  if ((await kept(database, "hash of the seal key", hash)) === hash) return;
  throw new RunStoreError(
    "the processes that share the store of TARGETING_MCP_STORE seal with another key",
    "Set the same TARGETING_MCP_SEAL_KEY for all of them, or for none.",
  );
}

/** The value of a setting; the given one where there is none yet. */
async function kept(database: Database, name: string, value: string): Promise<string> {
  await database.rows("insert into targeting_mcp.setting values ($1, $2) on conflict do nothing", [name, value]);
  const query = "select value from targeting_mcp.setting where name = $1";
  const [found] = await database.rows<{ value: string }>(query, [name]);
  return found?.value ?? value;
}
