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

type ExpectationCheck = Expectation['check'];

/** The definition of a kind of expectation. */
interface ExpectationWord {
	/** The arguments, as shown in usage messages. */
	readonly usage: string;
	readonly min: number;
	readonly max: number;
	/** Returns the check, or undefined after reporting a mistake. */
	readonly lower: (args: readonly [Word, ...Word[]], problem: TestProblem) => ExpectationCheck | undefined;
}

/** The kinds of expectations, by the word after `expect`. */
export const EXPECTATIONS: { readonly [word: string]: ExpectationWord } = {
	status: { usage: 'status <status> | <class>', min: 1, max: 1, lower: lowerStatus },
	header: {
		usage: 'header <name> [<value>]',
		min: 1,
		max: 2,
		lower: ([name, value], problem) => {
			if (!isFieldName(name, problem)) return undefined;
			return ({ response }) =>
				response ? fieldMismatch(response.headers, name.text, value?.text, 'the response') : noResponse();
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
					: { text: `the response has the field \`${name.text}\``, label: `it is ${quoteShort(value)}` };
			};
		},
	},
	body: {
		usage: 'body <text>',
		min: 1,
		max: 1,
		lower: ([text]) => bodyCheck(body => (body === text.text ? undefined : `the body is not ${quoteShort(text.text)}`)),
	},
	body_contains: {
		usage: 'body_contains <text>',
		min: 1,
		max: 1,
		lower: ([text]) =>
			bodyCheck(body => (body.includes(text.text) ? undefined : `the body does not contain ${quoteShort(text.text)}`)),
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
			return bodyCheck(body => (pattern.test(body) ? undefined : `the body does not match ${quoteShort(text.text)}`));
		},
	},
	upstream: {
		usage: 'upstream <name> | <address>',
		min: 1,
		max: 1,
		lower:
			([upstreamWord]) =>
			result => {
				const lastRequest = result.exchange.upstreamRequests.at(-1);
				if (!lastRequest) return noUpstreamRequest();
				const { name } = lastRequest.settings;
				if (upstreamWord.text === name || upstreamWord.text === lastRequest.upstream.address) return undefined;
				const destination =
					name === undefined ? lastRequest.upstream.address : `${name} (${lastRequest.upstream.address})`;
				return {
					text: `the request did not go to the upstream \`${upstreamWord.text}\``,
					label: `it went to ${destination}`,
				};
			},
	},
	upstream_header: {
		usage: 'upstream_header <name> [<value>]',
		min: 1,
		max: 2,
		lower: ([name, value], problem) => {
			if (!isFieldName(name, problem)) return undefined;
			return ({ exchange }) => {
				const lastRequest = exchange.upstreamRequests.at(-1);
				return lastRequest
					? fieldMismatch(lastRequest.request.headers, name.text, value?.text, 'the request to the upstream')
					: noUpstreamRequest();
			};
		},
	},
	upstream_path: {
		usage: 'upstream_path <path>[?<query>]',
		min: 1,
		max: 1,
		lower: ([expectedPath], problem) => {
			if (!expectedPath.text.startsWith('/')) {
				const hint = `Write \`/${expectedPath.text}\`.`;
				problem('test/not-a-path', expectedPath.span, `\`${expectedPath.text}\` is not a path.`, { hint });
				return undefined;
			}
			return ({ exchange }) => {
				const target = exchange.upstreamRequests.at(-1)?.request.target;
				if (target === undefined) return noUpstreamRequest();
				// The query is compared only if the expectation contains one.
				const receivedPath = expectedPath.text.includes('?') ? target : target.split('?', 1)[0]!;
				if (receivedPath === expectedPath.text) return undefined;
				return {
					text: `the upstream did not receive a request for ${quoteShort(expectedPath.text)}`,
					label: `it received one for ${quoteShort(receivedPath)}`,
				};
			};
		},
	},
	mirror: {
		usage: 'mirror <name> | <address>',
		min: 1,
		max: 1,
		lower:
			([mirrorWord]) =>
			({ exchange: { mirroredRequests: mirrored } }) => {
				if (mirrored.some(({ settings, upstream }) => [settings.name, upstream.address].includes(mirrorWord.text)))
					return undefined;
				const destinations = mirrored.map(({ upstream }) => upstream.address).join(' and ');
				return {
					text: `no copy of the request went to the mirror \`${mirrorWord.text}\``,
					label: destinations === '' ? 'the request was not copied' : `copies went to ${destinations}`,
				};
			},
	},
	no_mirror: {
		usage: 'no_mirror',
		min: 0,
		max: 0,
		lower:
			() =>
			({ exchange: { mirroredRequests: mirrored } }) => {
				const destinations = mirrored.map(({ upstream }) => upstream.address).join(' and ');
				return destinations === ''
					? undefined
					: { text: 'the request was copied', label: `copies went to ${destinations}` };
			},
	},
	log: {
		usage: 'log <field> [<value>]',
		min: 1,
		max: 2,
		lower:
			([field, value]) =>
			async result => {
				const entries = await result.logEntries();
				if (entries.length === 0) return { text: 'no access log has an entry for the request' };
				const values = entries.flatMap(entry => fieldValues(entry, field.text.split('.')));
				if (values.length === 0) {
					const names = [...new Set(entries.flatMap(entry => Object.keys(entry)))];
					const label = didYouMeanLabel(field.text, names) ?? `it has ${names.join(', ')}`;
					return { text: `the log entry has no field \`${field.text}\``, label };
				}
				if (value === undefined || values.includes(value.text)) return undefined;
				const label = `it is ${values.map(quoteShort).join(' and ')}`;
				return { text: `\`${field.text}\` of the log entry is not ${quoteShort(value.text)}`, label };
			},
	},
	no_log: {
		usage: 'no_log [<field>]',
		min: 0,
		max: 1,
		lower:
			([field]: readonly (Word | undefined)[]) =>
			async result => {
				const entries = await result.logEntries();
				if (field === undefined) {
					return entries.length === 0 ? undefined : { text: 'an access log has an entry for the request' };
				}
				const [value] = entries.flatMap(entry => fieldValues(entry, field.text.split('.')));
				return value === undefined
					? undefined
					: { text: `the log entry has the field \`${field.text}\``, label: `it is ${quoteShort(value)}` };
			},
	},
	handler: { usage: 'handler <handler> | <directive>', min: 1, max: 1, lower: lowerHandler },
	site: { usage: 'site <address>', min: 1, max: 1, lower: ([address]) => siteCheck(address.text) },
};

/**
 * Returns the values of a field as texts: several if the field holds a list. If no name on the path matches exactly, case is
 * ignored.
 */
function fieldValues(value: unknown, path: readonly string[]): string[] {
	if (Array.isArray(value)) return value.flatMap(one => fieldValues(one, path));
	const [name, ...rest] = path;
	if (name === undefined)
		return value === null || typeof value === 'object' ? [JSON.stringify(value)] : [String(value)];
	if (value === null || typeof value !== 'object') return [];
	const fields = Object.entries(value);
	const entry =
		fields.find(([key]) => key === name) ?? fields.find(([key]) => key.toLowerCase() === name.toLowerCase());
	return entry === undefined ? [] : fieldValues(entry[1], rest);
}

function lowerStatus([word]: readonly [Word, ...Word[]], problem: TestProblem): ExpectationCheck | undefined {
	const text = word.text.toLowerCase();
	if (!/^[1-5](?:\d\d|xx)$/.test(text)) {
		problem('value/not-a-status', word.span, `\`${word.text}\` is not a status.`, {
			hint: 'Write three digits from 100 to 599, or a class such as 5xx.',
		});
		return undefined;
	}
	return ({ response }) => {
		if (!response) return noResponse();
		const actualStatus = String(response.status);
		if (text.endsWith('xx') ? actualStatus[0] === text[0] : actualStatus === text) return undefined;
		return { text: `the status is ${actualStatus}, not ${text}`, label: `${actualStatus} came` };
	};
}

/** Lowers `expect handler`. The name of a directive stands for its handler. */
function lowerHandler([word]: readonly [Word, ...Word[]], problem: TestProblem): ExpectationCheck | undefined {
	const wantedHandler = resolveHandler(word.text);
	if (wantedHandler === undefined) {
		problem('test/unknown-handler', word.span, `\`${word.text}\` is not a handler.`, {
			...didYouMean(word, [...HANDLERS.keys(), ...directives.flatMap(({ names }) => names.configfile)]),
			hint: 'Write the name of a handler, such as `files`, or of its directive, such as `file_server`.',
		});
		return undefined;
	}
	return ({ exchange: { answeredBy } }) => {
		if (wantedHandler === answeredBy) return undefined;
		const label = answeredBy === '' ? 'no handler answered' : `\`${answeredBy}\` answered`;
		return { text: `\`${word.text}\` did not answer`, label };
	};
}

function resolveHandler(word: string): string | undefined {
	if (HANDLERS.has(word)) return word;
	const directive = directives.find(({ kind, names }) => kind === 'handler' && names.configfile.includes(word));
	return directive && directive.id !== '' ? directive.id : undefined;
}

function siteCheck(address: string): ExpectationCheck {
	return ({ site }, plan) => {
		const sites = plan.document.sites ?? [];
		const addresses = site === -1 ? [] : sites[site]!.addresses;
		const wantedAddress = canonicalAddress(address);
		if (addresses.some(one => canonicalAddress(one) === wantedAddress)) return undefined;
		const knownAddresses = sites.flatMap(one => one.addresses);
		if (!knownAddresses.some(one => canonicalAddress(one) === wantedAddress)) {
			const nearest = didYouMeanLabel(address, knownAddresses);
			return { text: `there is no site \`${address}\``, label: nearest ?? describeAnswer(addresses) };
		}
		return { text: `a site other than \`${address}\` answered`, label: describeAnswer(addresses) };
	};
	function describeAnswer(addresses: readonly string[]): string {
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

/**
 * Compares a header field with an expectation: one of the field's values, or all of them joined, must equal the expected value. If
 * no value is expected, the field must be present.
 */
function fieldMismatch(
	headers: HeaderList,
	name: string,
	expected: string | undefined,
	owner: string,
): Mismatch | undefined {
	const lowerName = name.toLowerCase();
	const values = headers.getAll(lowerName);
	if (values.length === 0) {
		const names = [...new Set([...headers].map(([other]) => other))];
		const nearest = didYouMeanLabel(name, names);
		return {
			text: `${owner} has no field \`${name}\``,
			label: nearest ?? (names.length > 0 ? `it has ${names.join(', ')}` : 'it has none'),
		};
	}
	if (expected === undefined) return undefined;
	const encodedValue = encodeFieldText(expected);
	if (values.includes(encodedValue) || values.join(', ') === encodedValue) return undefined;
	const actualValues = values.map(value => quoteShort(decodeFieldValue(value))).join(' and ');
	return { text: `\`${name}\` of ${owner} is not ${quoteShort(expected)}`, label: `it is ${actualValues}` };
}

/** Decodes a raw field value, which holds UTF-8 bytes as Latin-1 characters. */
function decodeFieldValue(value: string): string {
	const text = Buffer.from(value, 'latin1').toString('utf8');
	return text.includes('\ufffd') ? value : text;
}

function bodyCheck(mismatch: (body: string) => string | undefined): ExpectationCheck {
	return async ({ response }: DryRunResult) => {
		if (!response) return noResponse();
		const body = await response.text();
		const text = mismatch(body);
		return text === undefined ? undefined : { text, label: body === '' ? 'it is empty' : `it is ${quoteShort(body)}` };
	};
}

function noResponse(): Mismatch {
	return { text: 'there was no response', label: 'the connection was closed' };
}

function noUpstreamRequest(): Mismatch {
	return { text: 'the request went to no upstream' };
}

/** Returns the beginning of a text, in quotes and on one line. */
function quoteShort(text: string): string {
	const shortened = text.length > 80 ? `${text.slice(0, 79)}…` : text;
	return JSON.stringify(shortened);
}
