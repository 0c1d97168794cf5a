import { browserOfTest } from "../support/page-person.ts";
import { startSession } from "../support/writing.ts";

export const MARKUP = '<img src=x onerror="alert(1)"><b>bold</b>';
export const SCRIPT = "</td></table><script>alert(2)</script>{{7*7}}";
const BIDI = "safe\u202Egnp.exe\u200B";
export const SHOWN_BIDI = "safe\\u{202E}gnp.exe\\u{200B}";
const LONG = "n".repeat(200_000);
const IDS = ["01HZZZZZZZZZZZZZZZZZZZZZZZ", "01HZZZZZZZZZZZZZZZZZZZZZZ1", "01HZZZZZZZZZZZZZZZZZZZZZZ2"] as const;

/**
 * Starts the built command over stdio as a live server, with a targeting whose names are unusual. The server opens a
 * link in `browser`.
 */
export async function startDeciding(env: Readonly<Record<string, string>> = {}) {
  const browser = browserOfTest();
  const session = await startSession({ live: true, env: { ...browser.env, ...env } });
  const targetingId = IDS[0];
  const options = [SCRIPT, BIDI, LONG, "Running", "Hats"].map((name, at) => ({
    _id: `01HZZZZZZZZZZZZZZZZZZZZZA${at}`,
    targeting: targetingId,
    name,
    contexts: [`c-${at}`, SCRIPT],
  }));
  await session.control("/seed", { targetings: [{ _id: targetingId, name: MARKUP }], options });
  const ask = (ids: readonly string[] = options.slice(0, 3).map(({ _id }) => _id)) =>
    session.client.callTool("delete_options", { ids });
  return { ...session, browser, targetingId, options, ask };
}
