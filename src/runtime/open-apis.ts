import { serverTimeOf } from "../api/answers.ts";
import { type Http, openHttp } from "../api/http.ts";
import { keepingToLimits } from "../api/retry.ts";
import type { Log, LogFields } from "../observe/log.ts";
import type { Observer } from "../observe/observer.ts";
import { BUILT_IN_KEYS } from "../sandbox/keys.ts";
import { type Endpoint, type LiveEnvironment, proxyFor, type SandboxEnvironment } from "../settings/environment.ts";
import { SETTINGS } from "../settings/registry.ts";
import type { Settings } from "../settings/settings.ts";
import { acceptedKeys, embeddedSandbox, type Named } from "./embedded-sandbox.ts";
import { startsSandbox } from "./settings-input.ts";

/** The connections to the APIs. Nothing is connected or started before the first request. */
export interface Apis {
  readonly management?: Http | undefined;
  readonly events?: Http | undefined;
  /** The sandbox for event tests. In live mode, separate from an inspected sandbox, so that tests do not disturb it. */
  readonly bench?: Http | undefined;
  /** Returns the address of the sandbox in generated tests: the inspected sandbox, or else the one for event tests. */
  readonly benchUrl: () => Promise<string>;
  /** The sandbox that `inspect_events` reads. */
  readonly sandbox?: Http | undefined;
  /** Returns the targetings of the embedded sandbox's initial content. */
  readonly seeded?: () => Promise<readonly Named[]>;
  readonly start: () => Promise<unknown>;
  readonly close: () => Promise<void>;
}

export function openApis(settings: Settings): Apis {
  const { environment } = settings;
  return environment.kind === "sandbox" ? openSandbox(environment, settings) : openLive(environment, settings);
}

interface Watch {
  readonly redact: (body: Buffer) => Buffer;
  readonly log: Log;
  readonly now: () => number;
  readonly monotonic: () => number;
  readonly request?: Observer["request"] | undefined;
  /** Called with the time in each response of the service. */
  readonly serviceTime?: ((time: number) => void) | undefined;
}

/** Removes keys from responses, logs each request, and sends none earlier than the service allows. */
export function watched(apis: Apis, { redact, log, now, monotonic, request, serviceTime }: Watch): Apis {
  const seen = (
    http: Http | undefined,
    around?: Observer["request"],
    timeSaid?: (time: number) => void,
  ): Http | undefined =>
    http && {
      ...http,
      async send(sent) {
        const { operation, method } = sent;
        const began = now();
        const ended = (how: LogFields): void =>
          log.debug("a request to an API", { operation, method, milliseconds: now() - began, ...how });
        const send = () => http.send(sent);
        try {
          const answer = await (around === undefined ? send() : around(sent, send));
          ended({ statusCode: answer.statusCode });
          const time = timeSaid && serverTimeOf(answer.headers);
          if (time !== undefined) timeSaid?.(time);
          return { ...answer, body: redact(answer.body) };
        } catch (error) {
          ended({ error });
          throw error;
        }
      },
    };
  const limited = (http: Http | undefined) => http && keepingToLimits(http, monotonic);
  return {
    ...apis,
    management: limited(seen(apis.management, request, serviceTime)),
    events: limited(seen(apis.events, request, serviceTime)),
    bench: seen(apis.bench),
    sandbox: seen(apis.sandbox),
  };
}

function openLive(environment: LiveEnvironment, settings: Settings): Apis {
  const { requestTimeoutMs, proxies, sandboxUrl, readConcurrency: connections } = settings;
  const open = (endpoint: Endpoint | undefined, header: string, setBy: string) =>
    endpoint &&
    openHttp({
      connections,
      url: endpoint.url,
      setBy,
      credential: { [header]: endpoint.key },
      requestTimeoutMs,
      proxy: proxyFor(endpoint.url, proxies),
    });
  const management = open(environment.management, "x-api-key", SETTINGS.targetingApiUrl.variable);
  const events = open(environment.events, "authorization", SETTINGS.eventApiUrl.variable);
  const embedded = embeddedSandbox({ port: 0, keys: {}, seed: "none" });
  const [authorization] = BUILT_IN_KEYS.app;
  const bench = events && openHttp({ url: embedded.url, credential: { authorization }, requestTimeoutMs });
  const sandbox =
    sandboxUrl === undefined
      ? undefined
      : openHttp({ url: sandboxUrl, setBy: SETTINGS.sandboxUrl.variable, credential: {}, requestTimeoutMs });
  return {
    management,
    events,
    bench,
    benchUrl: async () => sandboxUrl ?? embedded.url(),
    sandbox,
    start: async () => undefined,
    async close() {
      await Promise.all([management, events, bench, sandbox].map((http) => http?.close()));
      await embedded.close();
    },
  };
}

function openSandbox(environment: SandboxEnvironment, settings: Settings): Apis {
  const { requestTimeoutMs, http, readConcurrency: connections } = settings;
  const { port, seed, managementKey, eventKey } = environment;
  const embedded = embeddedSandbox({
    port,
    seed,
    keys: acceptedKeys(managementKey, eventKey),
    allowedHosts: http.allowedHosts,
  });
  const url = environment.url ?? embedded.url;
  const way = { url, requestTimeoutMs, ...(environment.url !== undefined && { setBy: SETTINGS.sandboxUrl.variable }) };
  const management = openHttp({ ...way, credential: { "x-api-key": managementKey }, connections });
  const events = openHttp({ ...way, credential: { authorization: eventKey } });
  return {
    management,
    events,
    bench: events,
    benchUrl: async () => environment.url ?? embedded.url(),
    sandbox: events,
    ...(environment.url === undefined && seed !== "none" && { seeded: embedded.seeded }),
    start: async () => {
      if (startsSandbox({ environment })) await embedded.url();
    },
    async close() {
      await Promise.all([management.close(), events.close()]);
      await embedded.close();
    },
  };
}
