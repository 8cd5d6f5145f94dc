// Renders the documents for users as pages beside the API reference, so that every server shows them without a network.
// Pictures are left out, because the program does not contain them.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, Renderer } from 'marked';

/** The documents in docs, in the order of the navigation; the console links to the first one. */
const PAGES = [
  'api-guide',
  'search-your-texts',
  'console',
  'client',
  'cli',
  'coming-from',
  'access',
  'configuration',
  'operations',
  'production',
  'container',
  'cluster',
  'gpu',
  'metrics',
  'runbooks',
  'reliability',
  'performance',
];

/** Writes a page for each document of the folder `from` into the folder `to`. */
export function writeGuide(from, to) {
  const documents = PAGES.map((name) => {
    const text = readFileSync(join(from, `${name}.md`), 'utf8');
    return { name, text, title: /^# (.+)$/m.exec(text)[1] };
  });
  for (const { name, text, title } of documents) {
    const links = documents.map(
      (each) =>
        `<a href="${each.name}.html"${each.name === name ? ' aria-current="page"' : ''}>${escaped(each.title)}</a>`,
    );
    writeFileSync(join(to, `${name}.html`), pageOf(title, links, bodyOf(text)));
  }
}

function pageOf(title, links, body) {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${escaped(title)} - Sagitta</title>
    <link rel="icon" type="image/svg+xml" href="icon.svg" />
    <link rel="stylesheet" href="guide.css" />
  </head>
  <body>
    <nav aria-label="Documents">
      <a href="./">API reference</a>
      ${links.join('\n      ')}
    </nav>
    <main>
${body}
    </main>
  </body>
</html>
`;
}

function bodyOf(text) {
  return parse(text, { renderer: new PageRenderer() });
}

class PageRenderer extends Renderer {
  #anchorCounts = new Map();

  heading({ tokens, depth, text }) {
    const anchor = anchorOf(text);
    const count = this.#anchorCounts.get(anchor) ?? 0;
    this.#anchorCounts.set(anchor, count + 1);
    const id = count === 0 ? anchor : `${anchor}-${count}`;
    return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
  }

  link({ href, tokens }) {
    const content = this.parser.parseInline(tokens);
    const target = targetOf(href);
    return target === undefined ? content : `<a href="${escaped(target)}">${content}</a>`;
  }

  image() {
    return '';
  }

  /** In a box that scrolls, so that a wide table does not make the page wider than the window. */
  table(token) {
    return `<div class="table" tabindex="0">${super.table(token)}</div>\n`;
  }
}

/** Undefined for a file of the repository that is not a page. */
function targetOf(href) {
  if (/^(https?:|#)/.test(href)) return href;
  const [, name, anchor = ''] = /^(?:\.\/)?([\w-]+)\.md(#.*)?$/.exec(href) ?? [];
  return PAGES.includes(name) ? `${name}.html${anchor}` : undefined;
}

/** The anchor of a heading as code hosts make it, so that the links of the documents hold. */
function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

function escaped(text) {
  return text.replace(/[&<>"]/g, (found) => `&#${found.codePointAt(0)};`);
}
