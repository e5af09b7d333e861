/** Lowers `dynamic`: the DNS lookups from which a pool gets its addresses. */

import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { parseSingleDuration, parseSingleWord } from '../../words/single-value.ts';
import type { DynamicSource } from './upstream-pool.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type AddressDraft = Writable<Extract<DynamicSource, { source: 'a' }>>;
type ServiceDraft = Writable<Extract<DynamicSource, { source: 'srv' }>>;

const DYNAMIC_SOURCE_KINDS = ['srv', 'a', 'multi'] as const;

/** Returns the handler of the sub-directive `dynamic <source> […]`. */
export function dynamicSubdirective(poolDraft: { dynamic?: DynamicSource }, cx: LowerContext): SubdirectiveHandler {
	return (args, line) => {
		if (poolDraft.dynamic) {
			cx.problem('error', 'upstream/dynamic-twice', line.words[0]!.span, 'dynamic upstreams already specified');
			return;
		}
		if (!cx.count(line, args, 1, 3, 'dynamic srv|a|multi […]')) return;
		const source = lowerSource(args, line, cx);
		if (source) poolDraft.dynamic = source;
	};
}

function lowerSource(words: readonly Word[], line: Line, cx: LowerContext): DynamicSource | undefined {
	const [sourceWord, ...args] = words as [Word, ...Word[]];
	switch (cx.oneOf(sourceWord, DYNAMIC_SOURCE_KINDS, 'source of upstreams')) {
		case 'srv':
			return lowerServices(args, line, cx);
		case 'a':
			return lowerAddresses(args, line, cx);
		case 'multi': {
			cx.count(line, args, 0, 0, 'dynamic multi { <source>… }');
			const sources: DynamicSource[] = [];
			for (const innerLine of line.block?.lines ?? []) {
				const source = lowerSource(innerLine.words, innerLine, cx);
				if (source) sources.push(source);
			}
			return { source: 'multi', sources };
		}
		default:
			return undefined;
	}
}

function lowerServices(args: readonly Word[], line: Line, cx: LowerContext): DynamicSource | undefined {
	if (args.length > 1) cx.count(line, args, 0, 1, 'dynamic srv [<name>] { … }');
	const serviceDraft: ServiceDraft = { source: 'srv', name: args[0] ? cx.template(args[0]) : '' };
	const textHandler = (optionName: 'service' | 'proto' | 'name'): SubdirectiveHandler => {
		return (words, innerLine) => {
			const word = parseSingleWord(words, innerLine, cx, optionName);
			if (!word) return;
			if (optionName === 'name' && serviceDraft.name !== '') {
				cx.problem(
					'error',
					'upstream/name-twice',
					innerLine.words[0]!.span,
					`srv ${optionName} has already been specified`,
				);
			} else serviceDraft[optionName] = cx.template(word);
		};
	};
	lowerSourceOptions(
		line,
		{
			service: textHandler('service'),
			proto: textHandler('proto'),
			name: textHandler('name'),
			grace_period: (words, innerLine) => {
				const period = parseSingleDuration(words, innerLine, cx);
				if (period !== undefined) serviceDraft.grace_period = period;
			},
		},
		serviceDraft,
		'srv',
		cx,
	);
	if (serviceDraft.name === '' || (serviceDraft.service === undefined) !== (serviceDraft.proto === undefined)) {
		cx.problem('error', 'upstream/no-name', line.words[0]!.span, 'A `srv` source needs a name.', {
			hint: 'Give the full name, `_http._tcp.example.com`, or `service`, `proto` and `name`.',
		});
		return undefined;
	}
	return serviceDraft;
}

function lowerAddresses(args: readonly Word[], line: Line, cx: LowerContext): DynamicSource | undefined {
	const addressDraft: AddressDraft = { source: 'a', name: args[0] ? cx.template(args[0]) : '' };
	if (args[1]) addressDraft.port = lowerPort(args[1], cx);
	lowerSourceOptions(
		line,
		{
			name: (words, innerLine) => {
				const word = parseSingleWord(words, innerLine, cx, 'name');
				if (!word) return;
				if (addressDraft.name !== '')
					cx.problem('error', 'upstream/name-twice', innerLine.words[0]!.span, 'a name has already been specified');
				else addressDraft.name = cx.template(word);
			},
			port: (words, innerLine) => {
				const word = parseSingleWord(words, innerLine, cx, 'port');
				if (!word) return;
				if (addressDraft.port !== undefined)
					cx.problem('error', 'upstream/port-twice', innerLine.words[0]!.span, 'a port has already been specified');
				else addressDraft.port = lowerPort(word, cx);
			},
			versions: (words, innerLine) => {
				if (!cx.noBlock(innerLine) || !cx.count(innerLine, words, 1, 2, 'versions ipv4|ipv6…')) return;
				const versions: ('ipv4' | 'ipv6')[] = [];
				for (const { text, span } of words) {
					if (text === 'ipv4' || text === 'ipv6') versions.push(text);
					else cx.problem('error', 'upstream/unknown-version', span, `unsupported version: '${text}'`);
				}
				if (versions.length > 0) addressDraft.versions = versions;
			},
		},
		addressDraft,
		'a',
		cx,
	);
	if (addressDraft.name !== '') return addressDraft;
	cx.problem('error', 'upstream/no-name', line.words[0]!.span, 'An `a` source needs a name.', {
		hint: 'Write `dynamic a app.internal 8080`.',
	});
	return undefined;
}

/** Lowers the options in the block of a source: `ownOptions`, and the options that both kinds of source have. */
function lowerSourceOptions(
	line: Line,
	ownOptions: { readonly [name: string]: SubdirectiveHandler },
	sourceDraft: AddressDraft | ServiceDraft,
	sourceKind: 'a' | 'srv',
	cx: LowerContext,
): void {
	const durationHandler = (setValue: (value: number) => void): SubdirectiveHandler => {
		return (words, innerLine) => {
			const value = parseSingleDuration(words, innerLine, cx);
			if (value !== undefined) setValue(value);
		};
	};
	const handlers: { readonly [name: string]: SubdirectiveHandler } = {
		...ownOptions,
		refresh: durationHandler(value => {
			sourceDraft.refresh = Math.max(1, value);
		}),
		resolvers: (words, innerLine) => {
			if (!cx.noBlock(innerLine) || !cx.count(innerLine, words, 1, 16, 'resolvers <address>…')) return;
			sourceDraft.resolvers = [
				...(sourceDraft.resolvers ?? []),
				...words.filter(word => isResolverAddress(word, cx)).map(({ text }) => text),
			];
		},
		dial_timeout: durationHandler(value => {
			sourceDraft.dial_timeout = value;
		}),
		// The value is checked but not used, because lookups always query both address families concurrently.
		dial_fallback_delay: (words, innerLine) => {
			const word = parseSingleWord(words, innerLine, cx, 'duration');
			if (word && !word.text.startsWith('-')) cx.duration(word);
		},
	};
	for (const innerLine of line.block?.lines ?? []) {
		const word = innerLine.words[0]!;
		if (!Object.hasOwn(handlers, word.text)) {
			cx.problem(
				'error',
				'directive/unknown-subdirective',
				word.span,
				`unrecognized ${sourceKind} option '${word.text}'`,
				{
					hint: `\`dynamic ${sourceKind}\` takes ${Object.keys(handlers).join(', ')}.`,
				},
			);
			continue;
		}
		handlers[word.text]!(innerLine.words.slice(1), innerLine);
	}
}

function isResolverAddress({ text, span }: Word, cx: LowerContext): boolean {
	if (RESOLVER_PATTERN.test(text)) return true;
	cx.problem('error', 'upstream/invalid-resolver', span, `\`${text}\` is not the address of a resolver.`, {
		hint: 'Write an IP address, with a port if it is not 53: `10.0.0.2`, `10.0.0.2:5353`, `[::1]:53`.',
	});
	return false;
}

/** Matches an IP address, optionally with a network before the address (`udp/`) or a port after it. */
export const RESOLVER_PATTERN =
	/^(?:(?:udp|tcp)[46]?\/)?(?:\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?|[0-9a-fA-F:]*:[0-9a-fA-F:.]+|\[[0-9a-fA-F:.]+\](?::\d{1,5})?)$/;

function lowerPort(word: Word, cx: LowerContext): string {
	if (word.text.includes('{')) return cx.template(word);
	const port = cx.integer(word, 1, 65_535);
	return String(port ?? 80);
}
