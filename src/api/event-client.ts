import { EVENT_MESSAGES } from "../spec/events.ts";
import type { RouteTable } from "../spec/routes.ts";
import { isObject, jsonIn } from "./answers.ts";
import { call, isSuccess } from "./calls.ts";
import type { EventApi } from "./events.ts";
import type { Http } from "./http.ts";
import { errorOf } from "./rejections.ts";

/** The event API over HTTP (event-tracking-api 4, 7). */
export function eventsOver(http: Http, routes: RouteTable): EventApi {
  return {
    connect: () => http.connect("trackEvent"),
    async track(body, { signal, fence } = {}) {
      const { asked, answer } = await call(http, routes, "trackEvent", { body, signal, fence });
      const parsed = jsonIn(answer.body);
      const message = isObject(parsed) && typeof parsed.message === "string" ? parsed.message : undefined;
      if (!isSuccess(answer) && message !== EVENT_MESSAGES.invalid) throw errorOf(asked, answer);
      return { statusCode: answer.statusCode, message };
    },
  };
}
