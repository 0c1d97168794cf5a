/** Returns an object without its undefined fields, as JSON has it. */
export function defined<Fields extends object>(fields: Fields): Defined<Fields>;
export function defined(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

type Defined<Fields> = { [Field in keyof Fields]?: Exclude<Fields[Field], undefined> };
