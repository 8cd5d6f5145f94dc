// Origins of web pages, as browsers send them in the header Origin: scheme, host and port. Browsers and
// the service compare them as text, so that only this one form of each is accepted in settings and keys.

/** Schemes of apps and browser extensions (`capacitor://localhost`) have origins that URLs do not. */
const OTHER_ORIGIN = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[a-z0-9.-]+(:\d{1,5})?$/;
/** The longest host name, with a scheme and a port. */
const ORIGIN_CHARACTERS_MAX = 300;

/** Whether the text is an origin in the form in which browsers send it; `null` and `*` are none. */
export function isOrigin(text: string): boolean {
  if (text.length > ORIGIN_CHARACTERS_MAX) return false;
  return webOriginOf(text) === text || OTHER_ORIGIN.test(text);
}

/** The detail of an issue about a text that is no origin, with the origin that was probably meant. */
export function describeBadOrigin(text: string): string {
  if (text.length > ORIGIN_CHARACTERS_MAX) {
    return `Expected an origin of at most ${ORIGIN_CHARACTERS_MAX} characters; found ${text.length}.`;
  }
  const expected = webOriginOf(text) ?? 'an origin as browsers send it, https://app.example.org';
  return `Expected ${expected}; found ${JSON.stringify(text)}.`;
}

/** The origin of a URL of the web, without the default port and in lower case; null for anything else. */
function webOriginOf(text: string): string | null {
  // URLs may have a `*` as part of the host; it would be taken for a pattern.
  if (!/^https?:/i.test(text) || text.includes('*') || !URL.canParse(text)) return null;
  return new URL(text).origin;
}
