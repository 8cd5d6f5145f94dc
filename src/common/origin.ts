// Origins of web pages, as browsers send them in the Origin header: scheme, host and port. Browsers and the service
// compare them as text, so settings and keys accept only this one form.

/** Apps and browser extensions have schemes such as `capacitor://localhost`, which URL does not treat as origins. */
const OTHER_ORIGIN = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[a-z0-9.-]+(:\d{1,5})?$/;
/** The longest host name with a scheme and a port. */
const ORIGIN_CHARACTERS_MAX = 300;

/** Whether the text is an origin exactly as browsers send it; `null` and `*` are not. */
export function isOrigin(text: string): boolean {
  if (text.length > ORIGIN_CHARACTERS_MAX) return false;
  return webOriginOf(text) === text || OTHER_ORIGIN.test(text);
}

/** Describes a text that is not an origin, with the origin that was probably meant. */
export function describeBadOrigin(text: string): string {
  if (text.length > ORIGIN_CHARACTERS_MAX) {
    return `Expected an origin of at most ${ORIGIN_CHARACTERS_MAX} characters; found ${text.length}.`;
  }
  const expected = webOriginOf(text) ?? 'an origin as browsers send it, https://app.example.org';
  return `Expected ${expected}; found ${JSON.stringify(text)}.`;
}

/** The origin of a web URL, in lower case and without the default port; null for anything else. */
function webOriginOf(text: string): string | null {
  // A URL may contain `*` in its host, which would look like a pattern here.
  if (!/^https?:/i.test(text) || text.includes('*') || !URL.canParse(text)) return null;
  return new URL(text).origin;
}
