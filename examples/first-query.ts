// A first query from TypeScript against the server that `npm run demo` starts: counts the animals and prints the
// words nearest to "dolphin".

import { createClient } from '@sagitta/client';

const client = createClient({ baseUrl: process.env.SAGITTA_URL ?? 'http://127.0.0.1:8484' });
const senses = client.collection('wordnet');

const animals = { category: 'noun.animal' };
const { matches } = await senses.query({
  embed: 'a big cat with stripes',
  top_k: 3,
  filter: animals,
  include_metadata: true,
});

const count = await senses.count({ filter: animals });
console.log(`${count} animals; most like a big cat with stripes:`);
for (const { score, metadata } of matches) console.log(score.toFixed(3), metadata?.lemma);
