import { useSignal } from "@preact/signals";
import type { TargetedSubmitEvent } from "preact";
import { PATHS } from "../paths.ts";
import type { IssuerLogin, LoginWays, OpenedSession } from "../wire.ts";
import { send } from "./requests.ts";
import { keepLogin, keepSession } from "./session.ts";

/** What a person without session sees: why, and how to log in where that is possible. */
export function Login({ ways }: { readonly ways: LoginWays }) {
  const refusal = useSignal("");
  const isPossible = ways.token === true || ways.issuer !== undefined;
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const token = new FormData(event.currentTarget).get("token");
    const answer = await send<OpenedSession>(PATHS.login, { token });
    if ("message" in answer) {
      refusal.value = answer.message;
      return;
    }
    keepSession(answer.data.session);
    // The view or run that the address names is kept.
    location.reload();
  };
  const goToIssuer = async (event: Event) => {
    event.preventDefault();
    const answer = await send<IssuerLogin>(ways.issuer ?? "");
    if ("message" in answer) {
      refusal.value = answer.message;
      return;
    }
    keepLogin(answer.data.login);
    location.assign(answer.data.location);
  };
  return (
    <main class="alone">
      <p>
        <strong>◎ targeting-mcp</strong>
      </p>
      <h1>{isPossible ? "Log in" : "This page needs a link"}</h1>
      <p>{ways.message}</p>
      {!isPossible && (
        <p>
          The server opens this page by itself when a change waits for you. To open it now, run this command in a
          terminal: <code>targeting-mcp page</code>
        </p>
      )}
      {ways.token && (
        <form class="row" onSubmit={submit}>
          <label>
            Token <input name="token" type="password" autocomplete="off" required />
          </label>
          <button type="submit" class="primary">
            Log in
          </button>
        </form>
      )}
      {ways.issuer !== undefined && (
        <p>
          <a class="button" href={ways.issuer} onClick={goToIssuer}>
            Log in through the authorization server
          </a>
        </p>
      )}
      <p aria-live="polite">{refusal}</p>
    </main>
  );
}
