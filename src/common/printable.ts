// Text from files and servers as it is shown.

/** The text with a dot for each control character, and for each that changes the direction of writing. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '·');
}
