// Joins the class names of an element, leaving out those that do not apply.

export function classNames(...names: readonly (string | false | undefined)[]): string {
  return names.filter(Boolean).join(' ');
}
