/** The kinds of `expect` lines, each with its arguments and its check in one object. */

import { compileRegexp, RegexpError } from '../codegen/regexp/regexp.ts';
import { didYouMean, didYouMeanLabel } from '../diagnostics/suggest.ts';
import { formatSiteAddress, isSiteAddress, parseSiteAddress } from '../document/site-address.ts';
import type { DryRunResult } from '../dry-run/dry-run.ts';
import { encodeFieldText, isToken } from '../exchange/field-syntax.ts';
import type { HeaderList } from '../exchange/header-list.ts';
import { directives } from '../modules/registry/directives.ts';
import { HANDLERS } from '../modules/registry/handlers.ts';
import type { Word } from '../syntax/ast.ts';
import type { Expectation, Mismatch } from './test-case.ts';
import type { TestProblem } from './test-problem.ts';

type Check = Expectation['check'];

/** A kind of expectation. */
interface ExpectationWord {
	/** Arguments, for usage messages. */
	readonly usage: string;
	readonly min: number;
	readonly max: number;
	/** Returns the check, or undefined after reporting a mistake. */
	readonly lower: (args: readonly [Word, ...Word[]], problem: TestProblem) => Check | undefined;
}

/** Every word of `expect`. */
export const EXPECTATIONS: { readonly [word: string]: ExpectationWord } = {
	status: { usage: 'status <status> | <class>', min: 1, max: 1, lower: lowerStatus },
	header: {
		usage: 'header <name> [<value>]',
		min: 1,
		max: 2,
		lower: ([name, value], problem) => {
			if (!isFieldName(name, problem)) return undefined;
			return ({ response }) =>
				response ? fieldMismatch(response.headers, name.text, value?.text, 'the response') : dropped();
		},
	},
	no_header: {
		usage: 'no_header <name>',
		min: 1,
		max: 1,
		lower: ([name], problem) => {
			if (!isFieldName(name, problem)) return undefined;
			return ({ response }) => {
				const value = response?.headers.combined(name.text.toLowerCase());
				return value === undefined
					? undefined
					: { text: `the response has the field \`${name.text}\``, label: `it is ${quoted(value)}` };
			};
		},
	},
	body: {
		usage: 'body <text>',
		min: 1,
		max: 1,
		lower: ([text]) => bodyCheck(body => (body === text.text ? undefined : `the body is not ${quoted(text.text)}`)),
	},
	body_contains: {
		usage: 'body_contains <text>',
		min: 1,
		max: 1,
		lower: ([text]) =>
			bodyCheck(body => (body.includes(text.text) ? undefined : `the body does not contain ${quoted(text.text)}`)),
	},
	body_matches: {
		usage: 'body_matches <regexp>',
		min: 1,
		max: 1,
		lower: ([text], problem) => {
			let pattern: RegExp;
			try {
				pattern = compileRegexp(text.text);
			} catch (error) {
				if (!(error instanceof RegexpError)) throw error;
				problem('value/not-a-regular-expression', text.span, error.message);
				return undefined;
			}
			return bodyCheck(body => (pattern.test(body) ? undefined : `the body does not match ${quoted(text.text)}`));
		},
	},
	upstream: {
		usage: 'upstream <name> | <address>',
		min: 1,
		max: 1,
		lower:
			([wanted]) =>
			came => {
				const sent = came.exchange.sent.at(-1);
				if (!sent) return notSent();
				const { name } = sent.settings;
				if (wanted.text === name || wanted.text === sent.upstream.address) return undefined;
				const went = name === undefined ? sent.upstream.address : `${name} (${sent.upstream.address})`;
				return { text: `the request did not go to the upstream \`${wanted.text}\``, label: `it went to ${went}` };
			},
	},
	upstream_header: {
		usage: 'upstream_header <name> [<value>]',
		min: 1,
		max: 2,
		lower: ([name, value], problem) => {
			if (!isFieldName(name, problem)) return undefined;
			return ({ exchange }) => {
				const sent = exchange.sent.at(-1);
				return sent
					? fieldMismatch(sent.request.headers, name.text, value?.text, 'the request to the upstream')
					: notSent();
			};
		},
	},
	upstream_path: {
		usage: 'upstream_path <path>[?<query>]',
		min: 1,
		max: 1,
		lower: ([wanted], problem) => {
			if (!wanted.text.startsWith('/')) {
				const hint = `Write \`/${wanted.text}\`.`;
				problem('test/not-a-path', wanted.span, `\`${wanted.text}\` is not a path.`, { hint });
				return undefined;
			}
			return ({ exchange }) => {
				const target = exchange.sent.at(-1)?.request.target;
				if (target === undefined) return notSent();
				// The query is compared only if the expectation contains one.
				const came = wanted.text.includes('?') ? target : target.split('?', 1)[0]!;
				if (came === wanted.text) return undefined;
				return {
					text: `the upstream did not receive a request for ${quoted(wanted.text)}`,
					label: `it received one for ${quoted(came)}`,
				};
			};
		},
	},
	mirror: {
		usage: 'mirror <name> | <address>',
		min: 1,
		max: 1,
		lower:
			([wanted]) =>
			({ exchange: { mirrored } }) => {
				if (mirrored.some(({ settings, upstream }) => [settings.name, upstream.address].includes(wanted.text)))
					return undefined;
				const went = mirrored.map(({ upstream }) => upstream.address).join(' and ');
				return {
					text: `no copy of the request went to the mirror \`${wanted.text}\``,
					label: went === '' ? 'the request was not copied' : `copies went to ${went}`,
				};
			},
	},
	no_mirror: {
		usage: 'no_mirror',
		min: 0,
		max: 0,
		lower:
			() =>
			({ exchange: { mirrored } }) => {
				const went = mirrored.map(({ upstream }) => upstream.address).join(' and ');
				return went === '' ? undefined : { text: 'the request was copied', label: `copies went to ${went}` };
			},
	},
	log: {
		usage: 'log <field> [<value>]',
		min: 1,
		max: 2,
		lower:
			([field, value]) =>
			async came => {
				const entries = await came.logEntries();
				if (entries.length === 0) return { text: 'no access log has an entry for the request' };
				const found = entries.flatMap(entry => valuesAt(entry, field.text.split('.')));
				if (found.length === 0) {
					const names = [...new Set(entries.flatMap(entry => Object.keys(entry)))];
					const label = didYouMeanLabel(field.text, names) ?? `it has ${names.join(', ')}`;
					return { text: `the log entry has no field \`${field.text}\``, label };
				}
				if (value === undefined || found.includes(value.text)) return undefined;
				const label = `it is ${found.map(quoted).join(' and ')}`;
				return { text: `\`${field.text}\` of the log entry is not ${quoted(value.text)}`, label };
			},
	},
	no_log: {
		usage: 'no_log [<field>]',
		min: 0,
		max: 1,
		lower:
			([field]: readonly (Word | undefined)[]) =>
			async came => {
				const entries = await came.logEntries();
				if (field === undefined) {
					return entries.length === 0 ? undefined : { text: 'an access log has an entry for the request' };
				}
				const [value] = entries.flatMap(entry => valuesAt(entry, field.text.split('.')));
				return value === undefined
					? undefined
					: { text: `the log entry has the field \`${field.text}\``, label: `it is ${quoted(value)}` };
			},
	},
	handler: { usage: 'handler <handler> | <directive>', min: 1, max: 1, lower: lowerHandler },
	site: { usage: 'site <address>', min: 1, max: 1, lower: ([address]) => siteCheck(address.text) },
};

/** Returns the values of a field as texts; a list has several. The names of a path may differ in case, as names of fields do. */
function valuesAt(value: unknown, path: readonly string[]): string[] {
	if (Array.isArray(value)) return value.flatMap(one => valuesAt(one, path));
	const [name, ...rest] = path;
	if (name === undefined)
		return value === null || typeof value === 'object' ? [JSON.stringify(value)] : [String(value)];
	if (value === null || typeof value !== 'object') return [];
	const own = Object.entries(value);
	const entry = own.find(([key]) => key === name) ?? own.find(([key]) => key.toLowerCase() === name.toLowerCase());
	return entry === undefined ? [] : valuesAt(entry[1], rest);
}

function lowerStatus([word]: readonly [Word, ...Word[]], problem: TestProblem): Check | undefined {
	const text = word.text.toLowerCase();
	if (!/^[1-5](?:\d\d|xx)$/.test(text)) {
		problem('value/not-a-status', word.span, `\`${word.text}\` is not a status.`, {
			hint: 'Write three digits from 100 to 599, or a class such as 5xx.',
		});
		return undefined;
	}
	return ({ response }) => {
		if (!response) return dropped();
		const came = String(response.status);
		if (text.endsWith('xx') ? came[0] === text[0] : came === text) return undefined;
		return { text: `the status is ${came}, not ${text}`, label: `${came} came` };
	};
}

/** Lowers `expect handler`. The word of a directive stands for the handlers to which it lowers. */
function lowerHandler([word]: readonly [Word, ...Word[]], problem: TestProblem): Check | undefined {
	const wanted = handlerOf(word.text);
	if (wanted === undefined) {
		problem('test/unknown-handler', word.span, `\`${word.text}\` is not a handler.`, {
			...didYouMean(word, [...HANDLERS.keys(), ...directives.flatMap(({ names }) => names.configfile)]),
			hint: 'Write the name of a handler, such as `files`, or of its directive, such as `file_server`.',
		});
		return undefined;
	}
	return ({ exchange: { answeredBy } }) => {
		if (wanted === answeredBy) return undefined;
		const label = answeredBy === '' ? 'no handler answered' : `\`${answeredBy}\` answered`;
		return { text: `\`${word.text}\` did not answer`, label };
	};
}

function handlerOf(word: string): string | undefined {
	if (HANDLERS.has(word)) return word;
	const directive = directives.find(({ kind, names }) => kind === 'handler' && names.configfile.includes(word));
	return directive && directive.id !== '' ? directive.id : undefined;
}

function siteCheck(address: string): Check {
	return ({ site }, plan) => {
		const sites = plan.document.sites ?? [];
		const addresses = site === -1 ? [] : sites[site]!.addresses;
		const wanted = canonicalAddress(address);
		if (addresses.some(one => canonicalAddress(one) === wanted)) return undefined;
		const known = sites.flatMap(one => one.addresses);
		if (!known.some(one => canonicalAddress(one) === wanted)) {
			const nearest = didYouMeanLabel(address, known);
			return { text: `there is no site \`${address}\``, label: nearest ?? came(addresses) };
		}
		return { text: `a site other than \`${address}\` answered`, label: came(addresses) };
	};
	function came(addresses: readonly string[]): string {
		return addresses.length === 0 ? 'no site served the request' : `\`${addresses[0]}\` did`;
	}
}

function canonicalAddress(text: string): string {
	const parsed = parseSiteAddress(text);
	return isSiteAddress(parsed) ? formatSiteAddress(parsed) : text;
}

function isFieldName(word: Word, problem: TestProblem): boolean {
	if (isToken(word.text)) return true;
	problem('test/not-a-field', word.span, `\`${word.text}\` is not a field name.`);
	return false;
}

/** Compares a header field: one of its values, or all of them joined, must equal the expectation. Without a value, the field must be present. */
function fieldMismatch(
	headers: HeaderList,
	name: string,
	wanted: string | undefined,
	of: string,
): Mismatch | undefined {
	const lower = name.toLowerCase();
	const values = headers.getAll(lower);
	if (values.length === 0) {
		const names = [...new Set([...headers].map(([other]) => other))];
		const near = didYouMeanLabel(name, names);
		return {
			text: `${of} has no field \`${name}\``,
			label: near ?? (names.length > 0 ? `it has ${names.join(', ')}` : 'it has none'),
		};
	}
	if (wanted === undefined) return undefined;
	const wire = encodeFieldText(wanted);
	if (values.includes(wire) || values.join(', ') === wire) return undefined;
	const came = values.map(value => quoted(readable(value))).join(' and ');
	return { text: `\`${name}\` of ${of} is not ${quoted(wanted)}`, label: `it is ${came}` };
}

/** Decodes a raw field value, which holds UTF-8 bytes as Latin-1 characters. */
function readable(value: string): string {
	const text = Buffer.from(value, 'latin1').toString('utf8');
	return text.includes('\ufffd') ? value : text;
}

function bodyCheck(mismatch: (body: string) => string | undefined): Check {
	return async ({ response }: DryRunResult) => {
		if (!response) return dropped();
		const body = await response.text();
		const text = mismatch(body);
		return text === undefined ? undefined : { text, label: body === '' ? 'it is empty' : `it is ${quoted(body)}` };
	};
}

function dropped(): Mismatch {
	return { text: 'there was no response', label: 'the connection was closed' };
}

function notSent(): Mismatch {
	return { text: 'the request went to no upstream' };
}

/** Returns the beginning of a text, in quotes and on one line. */
function quoted(text: string): string {
	const shown = text.length > 80 ? `${text.slice(0, 79)}…` : text;
	return JSON.stringify(shown);
}
