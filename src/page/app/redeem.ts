import { PATHS } from "../paths.ts";
import { send } from "./requests.ts";
import { link } from "./state.ts";

/** Turns the code of a link, which works once, into a session, and goes on to the page. */
export async function redeem(code: string): Promise<void> {
  const answer = await send<unknown>(PATHS.redeem, { code });
  if ("message" in answer) link.value = { is: "refused", ways: { message: answer.message } };
  else location.replace(PATHS.page);
}
