// Types for the part of the package snowball-stemmers that we use; the package ships none.

declare module 'snowball-stemmers' {
  export function newStemmer(algorithm: string): { stem(word: string): string };
}
