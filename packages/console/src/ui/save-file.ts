// Offers bytes made in the page as a download.

/** By then the browser has read the file, and its memory can be released. */
const RELEASE_MS = 60_000;

export function saveFile(name: string, mediaType: string, parts: readonly BlobPart[]): void {
  const url = URL.createObjectURL(new Blob([...parts], { type: mediaType }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), RELEASE_MS);
}
