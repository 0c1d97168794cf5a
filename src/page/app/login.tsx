import { useSignal } from "@preact/signals";
import type { TargetedSubmitEvent } from "preact";
import { PATHS } from "../paths.ts";
import type { LoginWays } from "../wire.ts";
import { send } from "./requests.ts";

/** What a person without session sees: why, and how to log in where that is possible. */
export function Login({ ways }: { readonly ways: LoginWays }) {
  const refusal = useSignal("");
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const answer = await send<unknown>(PATHS.login, { token: new FormData(event.currentTarget).get("token") });
    if ("message" in answer) refusal.value = answer.message;
    else if (location.pathname !== PATHS.page) location.replace(PATHS.page);
    // The view or run that the address names is kept.
    else location.reload();
  };
  return (
    <main>
      <h1>{ways.token ? "Log in" : "No session"}</h1>
      <p>{ways.message}</p>
      {ways.token && (
        <form onSubmit={submit}>
          <label>
            Token <input name="token" type="password" autocomplete="off" required />
          </label>
          <button type="submit">Log in</button>
        </form>
      )}
      {ways.issuer !== undefined && (
        <p>
          <a href={ways.issuer}>Log in through the authorization server</a>
        </p>
      )}
      <p aria-live="polite">{refusal}</p>
    </main>
  );
}
