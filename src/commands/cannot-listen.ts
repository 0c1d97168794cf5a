import { SettingsError } from "../settings/error.ts";

/** The error for a server that cannot listen, in words for the person who started it. */
export function cannotListen(host: string, port: number, cause: unknown): SettingsError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new SettingsError(`cannot listen on ${host}, port ${port} (${why}): choose others with --host and --port`);
}
