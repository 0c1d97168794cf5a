/** Where every copy of the package of OpenTelemetry, of its major version 1, finds the SDK that was loaded. */
const SDK_PLACE = Symbol.for("opentelemetry.js.api.1");

/** Whether the person has loaded an SDK that makes traces, such as with `node --import`. */
export function hasTracingSdk(): boolean {
  const place: unknown = Reflect.get(globalThis, SDK_PLACE);
  return typeof place === "object" && place !== null && "trace" in place;
}
