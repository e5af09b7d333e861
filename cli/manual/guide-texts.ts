/** The Markdown of every guide. In the binary, the build replaces this module with one that contains the texts. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { TOPICS } from './topics.ts';

export const GUIDE_TEXTS: { readonly [topic: string]: string } = Object.fromEntries(
	TOPICS.map(topic => [topic, readFileSync(path.join(import.meta.dirname, `${topic}.md`), 'utf8')]),
);
