import * as z from "zod";
import { parseJson } from "../../platform/json.ts";
import type { ContentsStore, SeenOption } from "../backend/contents-store.ts";
import { type Database, ONCE } from "./database/database.ts";

/** Longer contents are read anew each time, in characters of JSON: a statement with more of them takes too long. */
const MOST_CHARACTERS = 4 * 1_048_576;
/** So many options in one statement. */
const AT_ONCE = 100;

const contextIds = z.array(z.string());

interface Row {
  readonly option: string;
  readonly record: string;
  readonly ids: string;
}

/**
 * Keeps contents in the database, for all processes of the cluster. What is asked for or kept at the same moment is one
 * statement.
 */
export function storedContents(
  database: Database,
  project: string,
  onProblem: (problem: unknown) => void,
): ContentsStore {
  const find = gathered(async (options: readonly SeenOption[]) => {
    const rows = await database
      .rows<Row & { readonly [column: string]: string }>(
        "select option, record, ids from targeting_mcp.content where project = $1 and option = any($2)",
        [project, options.map(({ optionId }) => optionId)],
        // Reading again costs less than waiting.
        ONCE,
      )
      .catch(onProblem);
    return new Map((rows ?? []).map((row) => [row.option, row]));
  });
  const keep = gathered(async (rows: readonly Row[]) => {
    // A statement may name each option only once.
    const last = [...new Map(rows.map((row) => [row.option, row])).values()];
    await database
      .rows(
        `insert into targeting_mcp.content (project, option, record, ids)
         select $1, option, record, ids from unnest($2::text[], $3::text[], $4::text[]) as given (option, record, ids)
         order by option
         on conflict (project, option)
         do update set record = excluded.record, ids = excluded.ids, kept_at = clock_timestamp()`,
        [project, last.map(({ option }) => option), last.map(({ record }) => record), last.map(({ ids }) => ids)],
        ONCE,
      )
      .catch(onProblem);
  });
  return {
    // Every look asks the database.
    refresh: async () => {},
    async get(option) {
      const row = (await find(option)).get(option.optionId);
      if (row?.record !== recordOf(option)) return undefined;
      const read = contextIds.safeParse(parseJson(row.ids));
      return read.success && read.data.length === option.contextCount ? read.data : undefined;
    },
    async put(option, contexts) {
      const ids = JSON.stringify(contexts);
      if (ids.length > MOST_CHARACTERS) return;
      await keep({ option: option.optionId, record: recordOf(option), ids });
    },
  };
}

function recordOf({ targetingId, updatedAt, contextCount }: SeenOption): string {
  return JSON.stringify([targetingId, updatedAt, contextCount]);
}

/** Makes what is asked for one by one into work on many: all that comes before the work begins. */
function gathered<One, Done>(work: (all: readonly One[]) => Promise<Done>): (one: One) => Promise<Done> {
  let waiting: { readonly all: One[]; readonly done: Promise<Done> } | undefined;
  return (one) => {
    if (waiting === undefined || waiting.all.length === AT_ONCE) {
      const all: One[] = [];
      const begun = { all, done: new Promise<void>(setImmediate).then(() => begin(all)) };
      waiting = begun;
    }
    waiting.all.push(one);
    return waiting.done;
  };

  function begin(all: readonly One[]): Promise<Done> {
    if (waiting?.all === all) waiting = undefined;
    return work(all);
  }
}
