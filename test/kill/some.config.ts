import { mergeConfig } from "vitest/config";
import every from "./vitest.config.ts";

/** `npm run test:kill:some`: kills processes at some steps of every kind of call, and suspends a few processes. */
export default mergeConfig(every, { test: { provide: { deaths: "some" } } });
