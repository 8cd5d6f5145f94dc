// Converts member names between code and wire: `topK` is `top_k` in requests and replies.

/** The same members under their wire names. */
export function wireNames<Members extends object>(members: Members): WireNames<Members> {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => [wireName(name), value]),
  ) as WireNames<Members>;
}

export function wireName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export type WireNames<Members> = {
  readonly [Name in keyof Members as SnakeCase<Name & string>]: Members[Name];
};

type SnakeCase<Name extends string> = Name extends `${infer Letter}${infer Rest}`
  ? `${Letter extends Lowercase<Letter> ? '' : '_'}${Lowercase<Letter>}${SnakeCase<Rest>}`
  : '';
