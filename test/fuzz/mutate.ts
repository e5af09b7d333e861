/** Mutates real configurations: lines and words, as by human mistakes, and bytes, as by attackers. */
import type { SeededChance } from './chance.ts';
import type { Corpus, Seed } from './corpus.ts';

/** Fragments that are significant to a lexer, parser or expansion. */
const FRAGMENTS: readonly string[] = [
	...[
		'{',
		'}',
		' {\n',
		'\n}\n',
		'"',
		'`',
		'\\',
		'#',
		'\n',
		'\r',
		'\t',
		' ',
		',',
		'=',
		'*',
		'/',
		'@',
		'!',
		'%',
		'<<E\n',
		'\nE',
	],
	...[
		'{$X}',
		'{$X:y}',
		'{$',
		'{args[0]}',
		'{args[:]}',
		'{block}',
		'{blocks.a}',
		'{let.a}',
		'{param.a}',
		'{host}',
		'{http.',
	],
	...[
		'import ',
		'import part',
		'use a b=1',
		'let a b',
		'else {',
		'} else {\n',
		'(a) {\n',
		'&(a) {\n',
		'@a ',
		' and ',
		' or ',
		' not ',
	],
	...[
		'( ',
		' )',
		'0',
		'-1',
		'1e9',
		'99999999999',
		'1h',
		'64KiB',
		'::1',
		'0.0.0.0/0',
		'ü',
		'\u0000',
		'\ud83d',
		'\ufeff',
		'\u2028',
	],
	...['(?', '(a+)+', '[', ']', '$1', '__proto__', 'constructor', '# lint: off ', 'http://', 'unix//x', ':99999', '[::'],
];

/** Returns a text of the corpus after random changes. */
export function mutatedText(chance: SeededChance, { seeds, lines, words }: Corpus): Seed {
	const seed = chance.of(seeds);
	if (seed.format === 'json') return { format: 'json', text: mutatedJson(chance, seed.text, words) };
	let { text } = seed;
	for (let count = chance.below(5) + 1; count > 0; count--) text = changeText(chance, text, lines, words);
	// Text that is valid in one language is often invalid in the other.
	const format = chance.once(6) ? (seed.format === 'configfile' ? 'compatfile' : 'configfile') : seed.format;
	return { format, text: text.slice(0, 20_000) };
}

function changeText(chance: SeededChance, text: string, lines: readonly string[], words: readonly string[]): string {
	const all = text.split('\n');
	const at = chance.below(all.length);
	switch (chance.below(12)) {
		case 0:
			all.splice(at, 1);
			return all.join('\n');
		case 1:
			all.splice(at, 0, all[chance.below(all.length)]!);
			return all.join('\n');
		case 2:
		case 3:
			all.splice(at, 0, chance.of(lines));
			return all.join('\n');
		case 4:
			all.splice(at, 0, `${chance.of(words)} ${chance.of(words)} {`, chance.of(lines), '}');
			return all.join('\n');
		case 5:
		case 6:
		case 7: {
			const parts = all[at]!.split(' ');
			const word = chance.below(parts.length);
			if (chance.once(3)) parts.splice(word, 1);
			else if (chance.once(2)) parts.splice(word, 0, chance.of(words));
			else parts[word] = chance.of(words);
			all[at] = parts.join(' ');
			return all.join('\n');
		}
		case 8: {
			// Moves a line to another place.
			const [line] = all.splice(at, 1);
			all.splice(chance.below(all.length + 1), 0, line!);
			return all.join('\n');
		}
		default:
			return bytes(chance, text);
	}
}

function bytes(chance: SeededChance, text: string): string {
	const at = chance.below(text.length + 1);
	switch (chance.below(5)) {
		case 0:
			return text.slice(0, at) + text.slice(at + 1 + chance.below(8));
		case 1:
			return (
				text.slice(0, at) + String.fromCharCode(chance.below(chance.once(4) ? 0x10000 : 0x80)) + text.slice(at + 1)
			);
		case 2:
			return text.slice(0, at);
		default:
			return text.slice(0, at) + chance.of(FRAGMENTS) + text.slice(at);
	}
}

/** Values that replace others in JSON documents. */
const REPLACEMENT_VALUES: readonly unknown[] = [
	null,
	true,
	0,
	-1,
	1.5,
	1e300,
	'',
	'x',
	'{',
	'[redacted]',
	[],
	{},
	[[]],
	{ handler: 'x' },
	{ type: 'any' },
];

function mutatedJson(chance: SeededChance, text: string, words: readonly string[]): string {
	if (chance.once(4)) return bytes(chance, text);
	let document: unknown;
	try {
		document = JSON.parse(text);
	} catch {
		return bytes(chance, text);
	}
	for (let count = chance.below(4) + 1; count > 0; count--) {
		const places: { holder: { [key: string]: unknown }; key: string }[] = [];
		const gather = (value: unknown): void => {
			if (typeof value !== 'object' || value === null) return;
			for (const key of Object.keys(value)) {
				places.push({ holder: value as { [key: string]: unknown }, key });
				gather((value as { [key: string]: unknown })[key]);
			}
		};
		gather(document);
		if (places.length === 0) break;
		const { holder, key } = chance.of(places);
		const other = chance.of(places);
		switch (chance.below(5)) {
			case 0:
				if (Array.isArray(holder)) holder.splice(Number(key), 1);
				else delete holder[key];
				break;
			case 1:
				holder[key] = structuredClone(chance.of(REPLACEMENT_VALUES));
				break;
			case 2:
				holder[key] = structuredClone(other.holder[other.key]);
				break;
			case 3:
				if (!Array.isArray(holder)) holder[chance.of(words)] = structuredClone(other.holder[other.key]);
				break;
			default:
				if (typeof holder[key] === 'string')
					holder[key] = chance.once(2) ? chance.of(words) : bytes(chance, holder[key]);
		}
	}
	return JSON.stringify(document);
}
