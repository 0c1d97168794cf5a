import { useSignal } from "@preact/signals";
import type { TargetedSubmitEvent } from "preact";
import { PATHS } from "../paths.ts";
import type { IssuerLogin, LoginWays, OpenedSession } from "../wire.ts";
import { send } from "./requests.ts";
import { keepLogin, keepSession } from "./session.ts";

/** What a person without session sees: why, and how to log in where that is possible. */
export function Login({ ways }: { readonly ways: LoginWays }) {
  const refusal = useSignal("");
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
          <a href={ways.issuer} onClick={goToIssuer}>
            Log in through the authorization server
          </a>
        </p>
      )}
      <p aria-live="polite">{refusal}</p>
    </main>
  );
}
