/** `share`: matches a percentage of all keys. The result for a key is always the same. */
import type { Matcher } from '../../document/document.ts';
import type { Word } from '../../syntax/ast.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import { requestMatcher } from '../contract/matcher.ts';
import { changeSettingPlaceholder, type RequestChange } from '../contract/request-change.ts';
import { murmurHash2 } from './murmur-hash2.ts';

export interface ShareMatcher extends Matcher {
	readonly type: 'share';
	/** Text with placeholders whose hash decides whether a request is in the share. */
	readonly key: string;
	/** Percentage at which the share begins; default 0. */
	readonly from?: number;
	/** Percentage at which the share ends. */
	readonly to: number;
}

const USAGE = 'share [<from>-]<to>% <key>';

/** Number of hundredths of a percent in 100%. */
const TOTAL_HUNDREDTHS = 10_000;

/**
 * Number of keys that `svc diff` tries in order to find keys just inside and outside of a share. Even a share of 0.05% contains
 * some of this many keys.
 */
const TRIED_KEY_COUNT = 8192;

export const share = requestMatcher<ShareMatcher>({
	id: 'share',
	usage: USAGE,
	summary: 'Matches a percentage of all keys, always the same ones.',
	documentation: [
		'The hash of the key, a text with placeholders, is a number from 0 to 100; the matcher holds if it is below the percentage, or',
		'in the range, as in `20-30%`. So a key is always in the share or never, in all threads and on all servers, and keys that',
		'are in a share of 10% are in one of 20%, too. An empty key is in no share. Percentages may have two decimals.',
		'',
		'A client whose key is a header field or a cookie can choose it, and thereby its share. Shares with the same key contain',
		'the same clients; to draw them anew, add a text to the key: `{client_ip}/search`. The directive `split` distributes requests',
		'to several branches.',
		'',
		'```',
		'@canary share 10% {client_ip}',
		'@second share 10-20% {cookie.visitor}',
		'```',
	].join('\n'),
	probeChanges: ({ key, from = 0, to }) => borderChanges(key, [from, to]),
	wordsOf: ({ key, from, to }) => [from === undefined ? `${to}%` : `${from}-${to}%`, key],
	lower: (line, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 2, 2, USAGE)) return undefined;
		const [portionWord, keyWord] = args as readonly Word[] as readonly [Word, Word];
		const [, startText, endText] = /^(?:([\d.]+)%?-)?([\d.]+%)$/.exec(portionWord.text) ?? [];
		const startPercentage = startText === undefined ? 0 : parsePercentage(`${startText}%`);
		const endPercentage = endText === undefined ? undefined : parsePercentage(endText);
		if (startPercentage === undefined || endPercentage === undefined || startPercentage > endPercentage) {
			const message = `\`${portionWord.text}\` is not a share of requests.`;
			cx.problem('error', 'share/invalid', portionWord.span, message, { hint: 'Write one such as `10%` or `20-30%`.' });
		}
		const key = lowerShareKey(keyWord, cx);
		if (startPercentage === undefined || endPercentage === undefined || key === undefined) return undefined;
		return { type: 'share', key, ...(startPercentage > 0 && { from: startPercentage }), to: endPercentage };
	},
	schema: {
		properties: {
			key: { type: 'string', minLength: 1, description: 'Text whose hash decides, with placeholders.' },
			from: { ...percentageSchema(), description: 'Percentage at which the share begins; default 0.' },
			to: { ...percentageSchema(), description: 'Percentage at which the share ends.' },
		},
		required: ['key', 'to'],
	},
	compile: (matcher, cx) => {
		const [startHash, endHash] = [hashThreshold(matcher.from ?? 0), hashThreshold(matcher.to)];
		const template = cx.template(matcher.key, 'empty');
		return x => {
			const key = template.constant ?? template.render(x);
			if (key === '') return false;
			const hash = murmurHash2(key);
			return hash >= startHash && hash < endHash;
		};
	},
});

function percentageSchema() {
	return { type: 'number', minimum: 0, maximum: 100 } as const;
}

/** Returns the hash below which the given percentage of all hashes lies. */
export function hashThreshold(percentage: number): number {
	const hundredths = Math.round(percentage * 100);
	return hundredths >= TOTAL_HUNDREDTHS ? 2 ** 32 : Math.floor((hundredths * 0xffffffff) / TOTAL_HUNDREDTHS);
}

/** Reads a percentage such as `10%` or `0.25%`; undefined if the text is not a percentage. */
export function parsePercentage(text: string): number | undefined {
	if (!/^\d{1,3}(\.\d{1,2})?%$/.test(text)) return undefined;
	const value = Number(text.slice(0, -1));
	return value <= 100 ? value : undefined;
}

/** Lowers the key of a share. Reports a key that is the same for all requests, and returns undefined. */
export function lowerShareKey(word: Word, cx: LowerContext): string | undefined {
	const key = cx.template(word);
	if (key.includes('{')) return key;
	cx.problem('error', 'share/constant-key', word.span, `The key \`${word.text}\` is the same for all requests.`, {
		hint: 'Write a placeholder whose value differs between clients, such as `{client_ip}` or `{cookie.NAME}`.',
	});
	return undefined;
}

/**
 * Returns changes to a request that move the hash of its key just below or just above each percentage. Returns no changes if the
 * key has several placeholders, or a placeholder that no change to a request can set.
 */
function borderChanges(key: string, percentages: readonly number[]): readonly RequestChange[] {
	const match = /^([^{}]*)\{([^{}]+)\}([^{}]*)$/.exec(key);
	if (!match) return [];
	const [, prefix, placeholderName, suffix] = match as unknown as readonly [string, string, string, string];
	if (changeSettingPlaceholder(placeholderName, sampleValue(placeholderName, 0)) === undefined) return [];
	const hashedValues = Array.from({ length: TRIED_KEY_COUNT }, (_, i) => {
		const value = sampleValue(placeholderName, i);
		return { value, hash: murmurHash2(prefix + value + suffix) };
	}).sort((a, b) => a.hash - b.hash);
	return percentages.flatMap(percentage => {
		const borderIndex = hashedValues.findIndex(({ hash }) => hash >= hashThreshold(percentage));
		const indexAbove = borderIndex === -1 ? hashedValues.length : borderIndex;
		return hashedValues
			.slice(Math.max(0, indexAbove - 1), indexAbove + 1)
			.flatMap(({ value }) => changeSettingPlaceholder(placeholderName, value) ?? []);
	});
}

/** Returns a sample value of a placeholder: an address of the network for benchmarks (RFC 2544), a host, a path or a word. */
function sampleValue(name: string, index: number): string {
	if (name === 'http.request.remote.host' || name === 'http.vars.client_ip')
		return `198.18.${index >> 8}.${index & 255}`;
	return `${name.startsWith('http.request.uri') ? '/' : ''}svc-diff-${index}`;
}
