/** `encode`: compresses responses for clients that accept it. */
import type { Step } from '../../../document/document.ts';
import type { Schema } from '../../../document/schema-type.ts';
import type { Coding, CodingName } from '../../../exchange/leases.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import { handlerDirective } from '../../contract/directive.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import {
	lowerResponseMatcher,
	RESPONSE_MATCHER_SCHEMA,
	type ResponseMatcher,
} from '../../matchers/response-matcher.ts';
import { compileEncode } from './encode-handler.ts';

export interface CompressStep extends Step {
	readonly handler: 'compress';
	/** Codings to use. The order decides between codings that the client accepts with equal weight. Default: `zstd`, `gzip`. */
	readonly codings?: readonly Coding[];
	/** Size in bytes that a body must exceed to be compressed; default 512. */
	readonly minimum_length?: number;
	/** Selects the responses to compress; by default, those whose media type is worth compressing. */
	readonly match?: ResponseMatcher;
}

const USAGE =
	'encode [matcher] [zstd | br | gzip]… { zstd [level]; br [level]; gzip [level]; minimum_length <bytes>; match … }';

/** The zstd levels that have names. The names are those of Caddy. */
const ZSTD_LEVELS: { readonly [name: string]: number } = { fastest: 1, default: 3, better: 7, best: 11 };

const CODINGS: readonly CodingName[] = ['zstd', 'br', 'gzip'];

/** Minimum and maximum compression level of each coding. */
const LEVEL_RANGES: { readonly [coding in CodingName]: readonly [number, number] } = {
	zstd: [1, 19],
	br: [0, 11],
	gzip: [1, 9],
};

export const encode = handlerDirective<CompressStep>({
	kind: 'handler',
	id: 'compress',
	changesBodies: true,
	names: { configfile: ['encode'], compatfile: ['encode'] },
	usage: USAGE,
	summary: 'Compresses responses for clients that accept it.',
	documentation: [
		"Uses the coding with the highest weight in the client's `Accept-Encoding`; of equal ones, the one named first here. The",
		'default is `zstd` and `gzip`. Responses are compressed as they are sent: whatever a handler sends piece by piece is flushed',
		'piece by piece, server-sent events immediately.',
		'',
		'| Line | Meaning |',
		'| --- | --- |',
		'| `gzip [1…9]` | gzip with a level, default 5 |',
		'| `br [0…11]` | Brotli with a level, default 4 |',
		'| `zstd [1…19 \\| fastest \\| default \\| better \\| best]` | Zstandard with a level, default `default` (3) |',
		'| `minimum_length BYTES` | shorter bodies are not compressed; default 512 |',
		'| `match …` | which responses: `status CODE…`, `header FIELD VALUE`, or a block of such lines |',
		'',
		'Without `match`, responses with a compressible `Content-Type` are compressed: text, JSON, XML, scripts, fonts, SVG and the like.',
		'Never compressed: responses that are already encoded, partial (206) or without a body, errors on their way to `handle_errors`, and',
		'responses with `Cache-Control: no-transform`. `Vary: Accept-Encoding` is added, and a strong `Etag` gets the name of the',
		'coding: `If-None-Match` and `If-Match` are compared with the tag of the form that the client would get. If too many responses',
		'are being compressed at once, further ones are sent uncompressed. The access log names the coding in `encoding`.',
		'',
		'```',
		'encode {',
		'	zstd better',
		'	gzip 6',
		'	minimum_length 1024',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 220 },
	lower: ({ line, args }, cx) => {
		const codings: Coding[] = [];
		const step: { minimum_length?: number; match?: ResponseMatcher } = {};
		const addCoding = (coding: Coding, word: Word): void => {
			if (codings.some(({ name }) => name === coding.name)) {
				cx.problem('error', 'encode/repeated', word.span, `\`${coding.name}\` is given more than once.`);
			} else codings.push(coding);
		};
		const codingHandler = (name: CodingName) => (words: readonly Word[], innerLine: Line) => {
			const coding = lowerCoding(name, words, innerLine, cx);
			if (coding) addCoding(coding, innerLine.words[0]!);
		};
		cx.subdirectives(
			line.block,
			{
				zstd: codingHandler('zstd'),
				br: codingHandler('br'),
				gzip: codingHandler('gzip'),
				minimum_length: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, 1, 'minimum_length <bytes>')) return;
					const size = cx.size(words[0]!);
					if (size !== undefined) step.minimum_length = size;
				},
				match: (words, innerLine) => {
					const matcher = lowerResponseMatcher(words, innerLine.block, innerLine, cx);
					if (matcher) step.match = matcher;
				},
			},
			'encode',
		);
		// A Compatfile may name a coding on the line and configure it in the block.
		const codingsInBlock = new Set(cx.dialect === 'compatfile' ? codings.map(({ name }) => name) : []);
		for (const word of args) {
			const name = cx.oneOf(word, CODINGS, 'encoding');
			if (name && !codingsInBlock.has(name)) addCoding({ name }, word);
		}
		return { handler: 'compress', ...(codings.length > 0 && { codings }), ...step };
	},
	schema: {
		properties: {
			codings: {
				type: 'array',
				minItems: 1,
				description: 'Codings in order of preference among those with equal weight; default zstd, then gzip.',
				items: { type: 'object', discriminator: { propertyName: 'name' }, oneOf: CODINGS.map(codingSchema) },
			},
			minimum_length: {
				type: 'integer',
				minimum: 0,
				default: 512,
				description: 'Bytes that a body must exceed; default 512.',
			},
			match: RESPONSE_MATCHER_SCHEMA,
		},
	},
	compile: compileEncode,
});

function codingSchema(name: CodingName): Schema {
	const [minimum, maximum] = LEVEL_RANGES[name];
	return {
		properties: {
			name: { const: name },
			level: { type: 'integer', minimum, maximum, description: 'Higher levels are smaller and slower.' },
			...(name === 'zstd' && { checksum: { const: false, description: 'Omits the checksum of frames.' } }),
		},
		required: ['name'],
		additionalProperties: false,
	};
}

function lowerCoding(name: CodingName, words: readonly Word[], innerLine: Line, cx: LowerContext): Coding | undefined {
	if (!cx.count(innerLine, words, 0, 1, `${name} [level]`)) return undefined;
	const coding: { name: CodingName; level?: number; checksum?: false } = { name };
	const setLevel = (word: Word): void => {
		const namedLevel = name === 'zstd' && Object.hasOwn(ZSTD_LEVELS, word.text) ? ZSTD_LEVELS[word.text] : undefined;
		if (namedLevel === undefined && name === 'zstd' && !/^\d+$/.test(word.text)) {
			cx.problem('error', 'encode/unknown-level', word.span, `\`${word.text}\` is not a level of zstd.`, {
				hint: 'Write `fastest`, `default`, `better`, `best`, or a number from 1 to 19.',
			});
			return;
		}
		const level = namedLevel ?? cx.integer(word, ...LEVEL_RANGES[name]);
		if (level !== undefined) coding.level = level;
	};
	if (words[0]) setLevel(words[0]);
	if (name !== 'zstd') {
		cx.noBlock(innerLine);
		return coding;
	}
	cx.subdirectives(
		innerLine.block,
		{
			level: (values, line) => {
				if (cx.count(line, values, 1, 1, 'level <level>')) setLevel(values[0]!);
			},
			disable_checksum: (values, line) => {
				if (cx.count(line, values, 0, 0, 'disable_checksum')) coding.checksum = false;
			},
		},
		'zstd',
	);
	return coding;
}
