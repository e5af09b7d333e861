/** The kinds of `expect` lines, each with its arguments and its check in one object. */

import { compileRegexp } from '../codegen/regexp/regexp.ts';
import { RegexpError } from '../codegen/regexp/regexp-error.ts';
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

/** A kind of expectation: its arguments and its check. */
interface ExpectationWord {
	/** The arguments, as shown in usage messages. */
	readonly usage: string;
	readonly minArguments: number;
	readonly maxArguments: number;
	/** Returns the check, or undefined after reporting a mistake. */
	readonly lower: (args: readonly [Word, ...Word[]], problem: TestProblem) => ExpectationCheck | undefined;
}

/** The kinds of expectations, by the word after `expect`. */
export const EXPECTATIONS: { readonly [word: string]: ExpectationWord } = {
	status: { usage: 'status <status> | <class>', minArguments: 1, maxArguments: 1, lower: lowerStatus },
	header: {
		usage: 'header <name> [<value>]',
		minArguments: 1,
		maxArguments: 2,
		lower: ([nameWord, valueWord], reportProblem) => {
			if (!checkFieldName(nameWord, reportProblem)) return undefined;
			return ({ response }) =>
				response
					? fieldMismatch(response.headers, nameWord.text, valueWord?.text, 'the response')
					: noResponseMismatch();
		},
	},
	no_header: {
		usage: 'no_header <name>',
		minArguments: 1,
		maxArguments: 1,
		lower: ([nameWord], reportProblem) => {
			if (!checkFieldName(nameWord, reportProblem)) return undefined;
			return ({ response }) => {
				const value = response?.headers.getCombined(nameWord.text.toLowerCase());
				return value === undefined
					? undefined
					: { text: `the response has the field \`${nameWord.text}\``, label: `it is ${quoteShort(value)}` };
			};
		},
	},
	body: {
		usage: 'body <text>',
		minArguments: 1,
		maxArguments: 1,
		lower: ([textWord]) =>
			createBodyCheck(body => (body === textWord.text ? undefined : `the body is not ${quoteShort(textWord.text)}`)),
	},
	body_contains: {
		usage: 'body_contains <text>',
		minArguments: 1,
		maxArguments: 1,
		lower: ([textWord]) =>
			createBodyCheck(body =>
				body.includes(textWord.text) ? undefined : `the body does not contain ${quoteShort(textWord.text)}`,
			),
	},
	body_matches: {
		usage: 'body_matches <regexp>',
		minArguments: 1,
		maxArguments: 1,
		lower: ([textWord], reportProblem) => {
			let pattern: RegExp;
			try {
				pattern = compileRegexp(textWord.text);
			} catch (error) {
				if (!(error instanceof RegexpError)) throw error;
				reportProblem('value/not-a-regular-expression', textWord.span, error.message);
				return undefined;
			}
			return createBodyCheck(body =>
				pattern.test(body) ? undefined : `the body does not match ${quoteShort(textWord.text)}`,
			);
		},
	},
	upstream: {
		usage: 'upstream <name> | <address>',
		minArguments: 1,
		maxArguments: 1,
		lower:
			([upstreamWord]) =>
			result => {
				const lastRequest = result.exchange.upstreamRequests.at(-1);
				if (!lastRequest) return noUpstreamMismatch();
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
		minArguments: 1,
		maxArguments: 2,
		lower: ([nameWord, valueWord], reportProblem) => {
			if (!checkFieldName(nameWord, reportProblem)) return undefined;
			return ({ exchange }) => {
				const lastRequest = exchange.upstreamRequests.at(-1);
				return lastRequest
					? fieldMismatch(lastRequest.request.headers, nameWord.text, valueWord?.text, 'the request to the upstream')
					: noUpstreamMismatch();
			};
		},
	},
	upstream_path: {
		usage: 'upstream_path <path>[?<query>]',
		minArguments: 1,
		maxArguments: 1,
		lower: ([pathWord], reportProblem) => {
			if (!pathWord.text.startsWith('/')) {
				const hint = `Write \`/${pathWord.text}\`.`;
				reportProblem('test/not-a-path', pathWord.span, `\`${pathWord.text}\` is not a path.`, { hint });
				return undefined;
			}
			return ({ exchange }) => {
				const receivedTarget = exchange.upstreamRequests.at(-1)?.request.target;
				if (receivedTarget === undefined) return noUpstreamMismatch();
				// The query is compared only if the expectation contains one.
				const receivedPath = pathWord.text.includes('?') ? receivedTarget : receivedTarget.split('?', 1)[0]!;
				if (receivedPath === pathWord.text) return undefined;
				return {
					text: `the upstream did not receive a request for ${quoteShort(pathWord.text)}`,
					label: `it received one for ${quoteShort(receivedPath)}`,
				};
			};
		},
	},
	mirror: {
		usage: 'mirror <name> | <address>',
		minArguments: 1,
		maxArguments: 1,
		lower:
			([mirrorWord]) =>
			({ exchange: { mirroredRequests: copies } }) => {
				if (copies.some(({ settings, upstream }) => [settings.name, upstream.address].includes(mirrorWord.text)))
					return undefined;
				const destinations = copies.map(({ upstream }) => upstream.address).join(' and ');
				return {
					text: `no copy of the request went to the mirror \`${mirrorWord.text}\``,
					label: destinations === '' ? 'the request was not copied' : `copies went to ${destinations}`,
				};
			},
	},
	no_mirror: {
		usage: 'no_mirror',
		minArguments: 0,
		maxArguments: 0,
		lower:
			() =>
			({ exchange: { mirroredRequests: copies } }) => {
				const destinations = copies.map(({ upstream }) => upstream.address).join(' and ');
				return destinations === ''
					? undefined
					: { text: 'the request was copied', label: `copies went to ${destinations}` };
			},
	},
	log: {
		usage: 'log <field> [<value>]',
		minArguments: 1,
		maxArguments: 2,
		lower:
			([fieldWord, valueWord]) =>
			async result => {
				const logEntries = await result.logEntries();
				if (logEntries.length === 0) return { text: 'no access log has an entry for the request' };
				const actualValues = logEntries.flatMap(entry => fieldValues(entry, fieldWord.text.split('.')));
				if (actualValues.length === 0) {
					const fieldNames = [...new Set(logEntries.flatMap(entry => Object.keys(entry)))];
					const label = didYouMeanLabel(fieldWord.text, fieldNames) ?? `it has ${fieldNames.join(', ')}`;
					return { text: `the log entry has no field \`${fieldWord.text}\``, label };
				}
				if (valueWord === undefined || actualValues.includes(valueWord.text)) return undefined;
				const label = `it is ${actualValues.map(quoteShort).join(' and ')}`;
				return { text: `\`${fieldWord.text}\` of the log entry is not ${quoteShort(valueWord.text)}`, label };
			},
	},
	no_log: {
		usage: 'no_log [<field>]',
		minArguments: 0,
		maxArguments: 1,
		lower:
			([fieldWord]: readonly (Word | undefined)[]) =>
			async result => {
				const logEntries = await result.logEntries();
				if (fieldWord === undefined) {
					return logEntries.length === 0 ? undefined : { text: 'an access log has an entry for the request' };
				}
				const [value] = logEntries.flatMap(entry => fieldValues(entry, fieldWord.text.split('.')));
				return value === undefined
					? undefined
					: { text: `the log entry has the field \`${fieldWord.text}\``, label: `it is ${quoteShort(value)}` };
			},
	},
	handler: { usage: 'handler <handler> | <directive>', minArguments: 1, maxArguments: 1, lower: lowerHandler },
	site: {
		usage: 'site <address>',
		minArguments: 1,
		maxArguments: 1,
		lower: ([addressWord]) => createSiteCheck(addressWord.text),
	},
};

/**
 * Returns the values of a log entry's field as texts: several if the field is a list. `path` contains the names of nested fields,
 * each of which ignores case if no field matches it exactly.
 */
function fieldValues(value: unknown, path: readonly string[]): string[] {
	if (Array.isArray(value)) return value.flatMap(item => fieldValues(item, path));
	const [name, ...innerPath] = path;
	if (name === undefined)
		return value === null || typeof value === 'object' ? [JSON.stringify(value)] : [String(value)];
	if (value === null || typeof value !== 'object') return [];
	const fields = Object.entries(value);
	const matchingField =
		fields.find(([key]) => key === name) ?? fields.find(([key]) => key.toLowerCase() === name.toLowerCase());
	return matchingField === undefined ? [] : fieldValues(matchingField[1], innerPath);
}

function lowerStatus([word]: readonly [Word, ...Word[]], reportProblem: TestProblem): ExpectationCheck | undefined {
	const expectedStatus = word.text.toLowerCase();
	if (!/^[1-5](?:\d\d|xx)$/.test(expectedStatus)) {
		reportProblem('value/not-a-status', word.span, `\`${word.text}\` is not a status.`, {
			hint: 'Write three digits from 100 to 599, or a class such as 5xx.',
		});
		return undefined;
	}
	return ({ response }) => {
		if (!response) return noResponseMismatch();
		const actualStatus = String(response.status);
		if (expectedStatus.endsWith('xx') ? actualStatus[0] === expectedStatus[0] : actualStatus === expectedStatus)
			return undefined;
		return { text: `the status is ${actualStatus}, not ${expectedStatus}`, label: `${actualStatus} came` };
	};
}

/** Lowers `expect handler`. The name of a directive may be given instead of its handler's. */
function lowerHandler([word]: readonly [Word, ...Word[]], reportProblem: TestProblem): ExpectationCheck | undefined {
	const wantedHandler = resolveHandler(word.text);
	if (wantedHandler === undefined) {
		reportProblem('test/unknown-handler', word.span, `\`${word.text}\` is not a handler.`, {
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

function createSiteCheck(address: string): ExpectationCheck {
	return ({ site }, plan) => {
		const sites = plan.document.sites ?? [];
		const addresses = site === -1 ? [] : sites[site]!.addresses;
		const wantedAddress = canonicalAddress(address);
		if (addresses.some(one => canonicalAddress(one) === wantedAddress)) return undefined;
		const knownAddresses = sites.flatMap(one => one.addresses);
		if (!knownAddresses.some(one => canonicalAddress(one) === wantedAddress)) {
			const suggestionLabel = didYouMeanLabel(address, knownAddresses);
			return { text: `there is no site \`${address}\``, label: suggestionLabel ?? describeAnswer(addresses) };
		}
		return { text: `a site other than \`${address}\` answered`, label: describeAnswer(addresses) };
	};
	function describeAnswer(addresses: readonly string[]): string {
		return addresses.length === 0 ? 'no site served the request' : `\`${addresses[0]}\` did`;
	}
}

function canonicalAddress(text: string): string {
	const siteAddress = parseSiteAddress(text);
	return isSiteAddress(siteAddress) ? formatSiteAddress(siteAddress) : text;
}

function checkFieldName(word: Word, reportProblem: TestProblem): boolean {
	if (isToken(word.text)) return true;
	reportProblem('test/not-a-field', word.span, `\`${word.text}\` is not a field name.`);
	return false;
}

/**
 * Compares a header field with an expectation: one of the field's values, or all of them joined, must equal the expected value. If
 * no value is expected, the field must be present.
 */
function fieldMismatch(
	headers: HeaderList,
	fieldName: string,
	expectedValue: string | undefined,
	messageName: string,
): Mismatch | undefined {
	const lowerName = fieldName.toLowerCase();
	const values = headers.getAll(lowerName);
	if (values.length === 0) {
		const fieldNames = [...new Set([...headers].map(([other]) => other))];
		const suggestionLabel = didYouMeanLabel(fieldName, fieldNames);
		return {
			text: `${messageName} has no field \`${fieldName}\``,
			label: suggestionLabel ?? (fieldNames.length > 0 ? `it has ${fieldNames.join(', ')}` : 'it has none'),
		};
	}
	if (expectedValue === undefined) return undefined;
	const encodedValue = encodeFieldText(expectedValue);
	if (values.includes(encodedValue) || values.join(', ') === encodedValue) return undefined;
	const actualValues = values.map(value => quoteShort(decodeFieldValue(value))).join(' and ');
	return {
		text: `\`${fieldName}\` of ${messageName} is not ${quoteShort(expectedValue)}`,
		label: `it is ${actualValues}`,
	};
}

/** Decodes a raw field value, which holds UTF-8 bytes as Latin-1 characters. */
function decodeFieldValue(value: string): string {
	const decodedText = Buffer.from(value, 'latin1').toString('utf8');
	return decodedText.includes('\ufffd') ? value : decodedText;
}

function createBodyCheck(mismatchOf: (body: string) => string | undefined): ExpectationCheck {
	return async ({ response }: DryRunResult) => {
		if (!response) return noResponseMismatch();
		const body = await response.text();
		const mismatchText = mismatchOf(body);
		return mismatchText === undefined
			? undefined
			: { text: mismatchText, label: body === '' ? 'it is empty' : `it is ${quoteShort(body)}` };
	};
}

function noResponseMismatch(): Mismatch {
	return { text: 'there was no response', label: 'the connection was closed' };
}

function noUpstreamMismatch(): Mismatch {
	return { text: 'the request went to no upstream' };
}

/** Returns the beginning of a text, in quotes and on one line. */
function quoteShort(text: string): string {
	const shortText = text.length > 80 ? `${text.slice(0, 79)}…` : text;
	return JSON.stringify(shortText);
}
