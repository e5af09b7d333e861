/** The fuzzer's corpus: every configuration in the fixtures and the manual, and the words in them. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { ConfigFormat } from '../../compiler/dialects/dialect.ts';
import { directives } from '../../compiler/modules/registry/directives.ts';
import { matchers } from '../../compiler/modules/registry/matchers.ts';
import { options } from '../../compiler/modules/registry/options.ts';
import { ROOT } from '../harness.ts';

/** A configuration to mutate. */
export interface Seed {
	readonly format: ConfigFormat;
	readonly text: string;
}

/** All seeds, and the words of each language. */
export interface Corpus {
	readonly seeds: readonly Seed[];
	readonly lines: readonly string[];
	readonly words: readonly string[];
}

const KINDS: readonly string[] = ['adapt', 'diagnostics', 'serve', 'lint'];
const FORMATS: { readonly [name: string]: ConfigFormat } = {
	Configfile: 'configfile',
	Compatfile: 'compatfile',
	'input.json': 'json',
	'expected.json': 'json',
};

/**
 * Golden cases that the corpus leaves out: they test a limit, and take as long as thousands of other cases. See
 * test/fuzz/growth.test.ts.
 */
const SLOW_CASES: readonly string[] = ['imports-that-make-too-much', 'matchers-that-double'];

/** Maximum length of a seed in characters. A longer text takes as much time as many short texts. */
const MAX_SEED_LENGTH = 6000;

/** Reads the corpus. It includes the examples of all registered modules. */
export function readCorpus(): Corpus {
	const seeds: Seed[] = [];
	for (const kind of KINDS) {
		const folder = path.join(ROOT, 'fixtures', kind);
		for (const entry of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
			const format = FORMATS[path.basename(entry)];
			if (!format || SLOW_CASES.some(name => entry.startsWith(name))) continue;
			const text = readFileSync(path.join(folder, entry), 'utf8');
			if (text.length <= MAX_SEED_LENGTH) seeds.push({ format, text });
		}
	}
	const pages = [...directives, ...matchers].map(({ documentation, usage }) => ({
		documentation,
		usage,
		option: false,
	}));
	pages.push(...options.map(({ documentation, usage }) => ({ documentation, usage, option: true })));
	const words = new Set<string>();
	for (const { documentation, usage } of pages) {
		for (const word of usage.match(/[a-z_]{2,}/g) ?? []) words.add(word);
		for (const [, example] of documentation.matchAll(/^```\n([\s\S]*?)^```/gm)) {
			const whole = /^(\{\n|:\d|https?:|upstream )/.test(example!) ? example! : `:8080 {\n${example}}\n`;
			seeds.push({ format: 'configfile', text: whole }, { format: 'compatfile', text: whole });
		}
		for (const [, word] of documentation.matchAll(/`([^`\n]{1,40})`/g)) words.add(word!);
	}
	const lines = new Set<string>();
	for (const { format, text } of seeds) {
		if (format === 'json') continue;
		for (const line of text.split('\n')) {
			lines.add(line.trim());
			for (const word of line.trim().split(/\s+/)) if (word.length < 60) words.add(word);
		}
	}
	return { seeds, lines: [...lines], words: [...words] };
}
