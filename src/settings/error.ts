/** A setting that cannot be used: the sentence names the variable and, where there is one, the flag. */
export class SettingsError extends Error {
  /** The environment variable of the setting; undefined where a flag is unknown. */
  readonly variable: string | undefined;
  constructor(message: string, variable?: string) {
    super(message);
    this.variable = variable;
  }
}
