/** What zones of `rate_limit` and `limit_concurrent` have in common: lowering, schema, keys, and the choice of requests. */
import type { Matcher } from '../../document/document.ts';
import { MATCHER_SCHEMA } from '../../document/references.ts';
import type { Schema } from '../../document/schema-type.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import { maskedAddress } from '../../exchange/ip-ranges.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import type { LowerContext, SubdirectiveHandler } from '../contract/lower-context.ts';
import { compileRanges, lowerRanges } from './range-words.ts';

/** A zone in the document: a limit on requests, which are counted separately for each key. */
export interface LimitZone {
	readonly name: string;
	/** Template of the key; default: the client's address. */
	readonly key?: string;
	/** Number of leading bits of an IPv6 client address that form the key; default 64. */
	readonly ipv6_prefix?: number;
	/** True to count and log the requests that would be refused, without refusing them. */
	readonly dry_run?: boolean;
	/** Client addresses and ranges that are not limited. */
	readonly allow?: readonly string[];
	/** Selects the requests that are limited. Default: all requests. */
	readonly when?: Matcher;
	/** Maximum number of keys in memory. */
	readonly max_keys?: number;
}

type Draft<Z> = { -readonly [K in keyof Z]?: Z[K] };

/** The properties in which directives with zones differ. */
export interface ZoneDirective<Z extends LimitZone> {
	/** `usage` is the usage of the directive; `zoneUsage` is the usage of `zone` in the directive's block. */
	readonly usage: string;
	readonly zoneUsage: string;
	/** Prefix of the codes of reported problems, without the `/`. */
	readonly codePrefix: string;
	/** Number of words that form the limit after the zone's name. */
	readonly limitWordCount: number;
	/** Lowers the words of a limit that are written on the directive's own line. */
	lowerLimit(words: readonly Word[], zone: Draft<Z>, cx: LowerContext): void;
	/** Returns the handlers of the lines that only the zones of this directive have. */
	zoneHandlers(zone: Draft<Z>, cx: LowerContext): { readonly [name: string]: SubdirectiveHandler };
	/** Words that are valid only in a block inside a zone, each with the first word of the line that opens this block. */
	readonly wordsOfInnerBlocks?: { readonly [name: string]: string };
	/** First words of the lines that set a limit. */
	readonly limitLineNames: readonly string[];
	/**
	 * Checks the lines of a zone together, and returns the zone unless it is incomplete.
	 * @param hasLimit True if the zone has a limit, valid or not.
	 */
	finishZone(zone: Draft<Z>, line: Line, hasLimit: boolean, cx: LowerContext): Z | undefined;
}

/** Template of the client's address, which is also the default key. */
export const CLIENT_KEY_TEMPLATE = '{http.vars.client_ip}';
const DEFAULT_IPV6_PREFIX = 64;
const ZONE_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const LOWEST_MAX_KEYS = 1024;
const HIGHEST_MAX_KEYS = 16_777_216;

/** Returns the schema of an integer field. */
export function countSchema(minimum: number, maximum: number, description: string): Schema {
	return { type: 'integer', minimum, maximum, description };
}

export function limitZoneSchemas(
	defaultKeys: number,
	maxKeys = HIGHEST_MAX_KEYS,
): { readonly [field: string]: Schema } {
	return {
		name: { type: 'string', pattern: ZONE_NAME.source, description: 'Zones of the same name share their counts.' },
		key: {
			type: 'string',
			minLength: 1,
			description: 'What is counted separately, with placeholders; default the client address.',
		},
		ipv6_prefix: countSchema(1, 128, 'Bits of an IPv6 client address that form the key; default 64.'),
		dry_run: { type: 'boolean', description: 'True to let requests pass that exceed the limit.' },
		allow: {
			type: 'array',
			items: { type: 'string' },
			description: 'Client addresses and ranges that are not limited.',
		},
		when: { ...MATCHER_SCHEMA, description: 'The requests that are counted; default all.' },
		max_keys: countSchema(LOWEST_MAX_KEYS, maxKeys, `Maximum number of keys in memory; default ${defaultKeys}.`),
		'@id': { type: 'string' },
	};
}

/** Returns a handler for lines with exactly one argument and no block. */
export function singleWordHandler(cx: LowerContext, usage: string, lower: (word: Word) => void): SubdirectiveHandler {
	return (words, innerLine) => {
		cx.noBlock(innerLine);
		if (cx.count(innerLine, words, 1, 1, usage)) lower(words[0]!);
	};
}

/** Sets a field of a draft, unless the value is undefined because it was invalid. */
export function setField<D, K extends keyof D>(draft: D, field: K, value: D[K] | undefined): void {
	if (value !== undefined) draft[field] = value;
}

/** Lowers a time in milliseconds. If it is out of range, reports a problem and returns undefined. */
export function lowerPeriod(
	word: Word,
	min: number,
	max: number,
	rangeText: string,
	cx: LowerContext,
): number | undefined {
	const periodMs = cx.duration(word);
	if (periodMs === undefined || (periodMs >= min && periodMs <= max)) return periodMs;
	cx.problem('error', 'value/out-of-range', word.span, `\`${word.text}\` is out of range.`, {
		hint: `Write a time from ${rangeText}.`,
	});
	return undefined;
}

/** Returns the handlers of the lines that the zones of all directives have. */
export function limitZoneHandlers(
	zone: Draft<LimitZone>,
	codePrefix: string,
	cx: LowerContext,
	maxKeys = HIGHEST_MAX_KEYS,
): { readonly [name: string]: SubdirectiveHandler } {
	return {
		key: singleWordHandler(cx, 'key <text>', word => {
			const key = cx.template(word);
			if (key === '') {
				const message = 'The key is empty: all requests would share one limit.';
				cx.problem('error', `${codePrefix}/empty-key`, word.span, message, {
					hint: 'Write `static` for one limit for all requests.',
				});
			} else setField(zone, 'key', key === CLIENT_KEY_TEMPLATE ? undefined : key);
		}),
		ipv6_prefix: singleWordHandler(cx, 'ipv6_prefix <bits>', word =>
			setField(zone, 'ipv6_prefix', cx.integer(word, 1, 128)),
		),
		match: (words, innerLine) => {
			const matcher = cx.matcherExpression(words, innerLine.block, undefined);
			if (matcher) zone.when = zone.when ? { type: 'all', of: [zone.when, matcher] } : matcher;
		},
		allow: (words, innerLine) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'allow <range>…'))
				zone.allow = [...(zone.allow ?? []), ...lowerRanges(words, cx)];
		},
		max_keys: singleWordHandler(cx, 'max_keys <n>', word =>
			setField(zone, 'max_keys', cx.integer(word, LOWEST_MAX_KEYS, maxKeys)),
		),
		dry_run: (words, innerLine) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 0, 0, 'dry_run')) zone.dry_run = true;
		},
	};
}

/** Reports an `ipv6_prefix` in a zone whose key is not the client's address. */
export function checkIpv6Prefix(
	{ ipv6_prefix: prefix, key }: Draft<LimitZone>,
	line: Line,
	codePrefix: string,
	cx: LowerContext,
) {
	if (prefix === undefined || key === undefined) return;
	const message = '`ipv6_prefix` has no effect on this key.';
	cx.problem('error', `${codePrefix}/prefix`, line.words[0]!.span, message, {
		hint: 'It applies to the key `{client_ip}`. Remove it.',
	});
}

/** Records where a finished zone is written in the configuration, and returns the zone. */
export function recordZoneOrigin<Z extends LimitZone>(zone: Z, line: Line, cx: LowerContext): Z {
	const keyLine = line.block?.lines.find(({ words }) => words[0]!.text === 'key');
	return cx.origin(zone, line.span, keyLine && { key: keyLine.words.at(-1)!.span });
}

/** Lowers the zones of a directive: the zone that is named on its own line, and the zones in its block. */
export function lowerZones<Z extends LimitZone>(
	line: Line,
	args: readonly Word[],
	directive: ZoneDirective<Z>,
	cx: LowerContext,
): Z[] {
	const { usage, zoneUsage, codePrefix, limitWordCount, limitLineNames, wordsOfInnerBlocks = {} } = directive;
	const zones: Z[] = [];
	const draft: Draft<Z> = {};
	const [nameWord, ...limitArgs] = args;
	if (nameWord) {
		if (checkZoneName(nameWord, codePrefix, usage, cx)) draft.name = nameWord.text;
		if (limitArgs.length > 0 && cx.count(line, args, 1 + limitWordCount, 1 + limitWordCount, usage))
			directive.lowerLimit(limitArgs, draft, cx);
	}
	const zoneNames = new Set<string>();
	let lineOutsideZone: Line | undefined;
	const zoneHandlers: { [name: string]: SubdirectiveHandler } = {
		zone: (words, innerLine) => {
			if (!cx.count(innerLine, words, 1, 1, zoneUsage) || !checkZoneName(words[0]!, codePrefix, zoneUsage, cx)) return;
			const { text, span } = words[0]!;
			if (zoneNames.has(text))
				cx.problem('error', `${codePrefix}/zone-twice`, span, `The zone \`${text}\` is defined twice here.`);
			zoneNames.add(text);
			const zoneDraft: Draft<Z> = {};
			zoneDraft.name = text;
			cx.subdirectives(innerLine.block, directive.zoneHandlers(zoneDraft, cx), 'zone', { wordsOfInnerBlocks });
			const zone = directive.finishZone(zoneDraft, innerLine, hasLine(innerLine, limitLineNames), cx);
			if (zone) zones.push(zone);
		},
	};
	for (const [name, lower] of Object.entries(directive.zoneHandlers(draft, cx))) {
		zoneHandlers[name] = (words, innerLine) => {
			if (!nameWord) lineOutsideZone ??= innerLine;
			lower(words, innerLine);
		};
	}
	const directiveWord = line.words[0]!;
	cx.subdirectives(line.block, zoneHandlers, directiveWord.text, { wordsOfInnerBlocks });
	if (nameWord) {
		const zone = directive.finishZone(draft, line, limitArgs.length > 0 || hasLine(line, limitLineNames), cx);
		if (zone) zones.unshift(zone);
	} else if (lineOutsideZone) {
		const { text, span } = lineOutsideZone.words[0]!;
		cx.problem('error', `${codePrefix}/no-zone`, span, `\`${text}\` is outside of a zone.`, {
			hint: `Name a zone in the first line: ${usage}`,
		});
	} else if (zones.length === 0 && zoneNames.size === 0) {
		cx.problem('error', `${codePrefix}/no-zone`, directiveWord.span, 'There is no limit.', { hint: `Usage: ${usage}` });
	}
	return zones;
}

function checkZoneName({ text, span }: Word, codePrefix: string, usage: string, cx: LowerContext): boolean {
	if (ZONE_NAME.test(text)) return true;
	cx.problem('error', `${codePrefix}/zone-name`, span, `\`${text}\` cannot be the name of a zone.`, {
		hint: `A name consists of letters, digits, \`_\`, \`.\` and \`-\`. Usage: ${usage}`,
	});
	return false;
}

/** Reports whether the block of a line contains a line, valid or not, whose first word is one of these names. */
function hasLine({ block }: Line, firstWords: readonly string[]): boolean {
	return block?.lines.some(({ words }) => firstWords.includes(words[0]!.text)) === true;
}

/** Compiles a function that reports whether a zone counts a request. */
export function compileZoneScope(zone: LimitZone, whenField: string, cx: CompileContext): (x: Exchange) => boolean {
	const matchesWhen = zone.when && cx.matcher(zone.when, whenField);
	const allowedRanges = zone.allow && compileRanges(zone.allow, cx);
	const { clientIp } = cx;
	return x => {
		if (matchesWhen && !matchesWhen(x)) return false;
		return !allowedRanges?.contains(clientIp(x));
	};
}

export function compileZoneKey(
	{ key = CLIENT_KEY_TEMPLATE, ipv6_prefix: prefix = DEFAULT_IPV6_PREFIX }: LimitZone,
	cx: CompileContext,
): (x: Exchange) => string {
	if (key !== CLIENT_KEY_TEMPLATE) {
		const template = cx.template(key, 'empty');
		return x => template.render(x);
	}
	const { clientIp } = cx;
	// An IPv6 customer usually gets a whole /64 and could evade a limit by address by changing the address for every request.
	return x => {
		const address = clientIp(x);
		return address.includes(':') ? (maskedAddress(address, 32, prefix) ?? address) : address;
	};
}
