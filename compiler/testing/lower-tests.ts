/** Lowers `test` blocks to test cases and reports every mistake. */
import type { Report } from '../diagnostics/diagnostic.ts';
import { didYouMean, suggestName } from '../diagnostics/suggest.ts';
import {
	canonicalClientAddress,
	fieldMistake,
	isRequestUrl,
	methodMistake,
	parseClockTime,
	parseRequestProtocol,
	parseRequestUrl,
	type RequestMistake,
	type RequestProtocol,
	type RequestUrl,
	serverNameMistake,
} from '../dry-run/dry-run-request.ts';
import {
	CERTIFICATE_USAGE,
	type CertificateFact,
	imaginedCertificate,
	parseCertificateFact,
} from '../dry-run/imagined-certificate.ts';
import type { ClientCertificate } from '../exchange/exchange.ts';
import { formatNameList, spanOfWords } from '../lower/context/sentences.ts';
import { parseDuration } from '../lower/context/values.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Line, NamedBlock, Word } from '../syntax/ast.ts';
import { EXPECTATIONS } from './expectations.ts';
import type { BusyZone, Expectation, TestCase, TestStep, TestUpstream } from './test-case.ts';
import type { TestProblem } from './test-problem.ts';
import { testRows } from './test-rows.ts';

const COMMON_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
/** Words allowed in the block of a request. */
const REQUEST_WORDS = ['header', 'body', 'from', 'at', 'protocol', 'sni', 'client_certificate', 'cookies'] as const;
/** Words allowed on the lines after a request. */
export const STEP_WORDS = ['expect', 'upstream', 'busy', 'repeat', 'after', ...REQUEST_WORDS] as const;
/** Words that say, in an `upstream` line, what the upstream does. */
export const UPSTREAM_BEHAVIORS = ['answers', 'fails', 'times'] as const;
const UPSTREAM_USAGE = 'upstream [<name> | <address>] answers <status> [<body>] | fails | times out';

const MAX_REPETITIONS = 10_000;
/** Maximum pause after a step, in milliseconds: a year. */
const MAX_PAUSE_MS = 366 * 86_400_000;

/** Lowers the tests of a configuration. Tests with mistakes are omitted. */
export function lowerTests(blocks: readonly NamedBlock[], report: Report): TestCase[] {
	const reportProblem: TestProblem = (code, span, message, details) =>
		report({ severity: 'error', ...details, code, span, message });
	const spanByName = new Map<string, SourceSpan>();
	return blocks.flatMap(block => {
		const { text, span } = block.name;
		const earlierSpan = spanByName.get(text);
		if (earlierSpan) {
			reportProblem('test/defined-twice', span, `The test \`${text}\` is defined more than once.`, {
				related: [{ span: earlierSpan, message: 'first defined here' }],
			});
		} else spanByName.set(text, span);
		// All rows of a table share the lines of the test, so a mistake in these lines is reported only once.
		const reportProblemOnce = withoutRepetitions(reportProblem);
		return testRows(block, reportProblemOnce).map(row => {
			const test = new TestReader(row.block, reportProblemOnce).read();
			return row.span === span ? test : { ...test, row: row.span };
		});
	});
}

function withoutRepetitions(reportProblem: TestProblem): TestProblem {
	const reportedKeys = new Set<string>();
	return (code, span, message, details) => {
		const key = JSON.stringify([code, span.start, span.end, message]);
		if (reportedKeys.has(key)) return;
		reportedKeys.add(key);
		reportProblem(code, span, message, details);
	};
}

/** A step whose lines are being lowered. */
interface StepDraft {
	readonly span: SourceSpan;
	readonly method: string;
	/** The URL; undefined after a mistake, in which case the step is checked but not run. */
	readonly url: RequestUrl | undefined;
	readonly headers: [string, string][];
	body: string | undefined;
	from: string | undefined;
	at: number | undefined;
	protocol: RequestProtocol | undefined;
	sni: string | undefined;
	certificate: ClientCertificate | undefined;
	sendsCookies: boolean;
	readonly upstreams: TestUpstream[];
	readonly busyZones: BusyZone[];
	repetitions: number;
	pauseMs: number;
	readonly expectations: Expectation[];
	/** True if the step has an `expect` line, even an invalid one. */
	hasExpectation: boolean;
	/** The spans of those words given so far that may be given only once. */
	readonly givenWords: Map<string, SourceSpan>;
}

class TestReader {
	readonly #block: NamedBlock;
	readonly #reportProblem: TestProblem;
	readonly #steps: TestStep[] = [];
	#step: StepDraft | undefined;

	constructor(block: NamedBlock, reportProblem: TestProblem) {
		this.#block = block;
		this.#reportProblem = reportProblem;
	}

	read(): TestCase {
		const { name, lines } = this.#block;
		for (const line of lines) this.#readLine(line);
		if (!this.#step && lines.length === 0) {
			this.#reportProblem('test/no-request', name.span, `The test \`${name.text}\` contains no request.`, {
				hint: 'Begin it with a line such as `GET http://example.com/`.',
			});
		}
		this.#endStep();
		return { name: name.text, span: name.span, steps: this.#steps };
	}

	#readLine(line: Line): void {
		const [word, ...args] = line.words as readonly [Word, ...Word[]];
		if (line.alternative) {
			const { span } = line.alternative.words[0]!;
			this.#reportProblem('test/unexpected-word', span, '`else` is not allowed in a test.');
		}
		if (isRequestLine(word, args)) {
			this.#beginStep(line, word, args);
			return;
		}
		if (!(STEP_WORDS as readonly string[]).includes(word.text)) {
			this.#reportUnknown(word);
			return;
		}
		this.#rejectBlock(line);
		if (!this.#step) {
			this.#reportProblem('test/before-request', word.span, `\`${word.text}\` comes before the first request.`, {
				hint: 'A test begins with a line such as `GET http://example.com/`.',
			});
			this.#step = emptyStep(word.span);
		}
		if (word.text === 'expect') this.#readExpectation(line, args, this.#step);
		else if (word.text === 'upstream') this.#readUpstream(line, args, this.#step);
		else if (word.text === 'busy') this.#readBusy(word, args, this.#step);
		else if (word.text === 'repeat') this.#readRepeat(word, args, this.#step);
		else if (word.text === 'after') this.#readAfter(word, args, this.#step);
		else this.#readRequestPart(line, this.#step);
	}

	#reportUnknown(word: Word): void {
		const upperText = word.text.toUpperCase();
		const isMethod = (COMMON_METHODS as readonly string[]).includes(upperText);
		this.#reportProblem('test/unknown', word.span, `\`${word.text}\` is not allowed in a test.`, {
			...(isMethod
				? { ...suggestName(word, upperText), label: `write \`${upperText}\`` }
				: didYouMean(word, ['cases', ...STEP_WORDS, ...COMMON_METHODS, ...Object.keys(EXPECTATIONS)])),
			hint: Object.hasOwn(EXPECTATIONS, word.text)
				? `Write \`expect ${word.text} …\`.`
				: 'A test contains requests (`GET http://example.com/`), `upstream answers …` and `expect …`.',
		});
	}

	#beginStep(line: Line, methodWord: Word, args: readonly Word[]): void {
		this.#endStep();
		const [urlWord, surplusWord] = args;
		const span = spanOfWords(line.words);
		let url: RequestUrl | undefined;
		const methodProblem = methodMistake(methodWord.text);
		if (methodProblem) this.#reportMistake('test/bad-method', methodWord.span, methodProblem);
		if (!urlWord) {
			this.#reportProblem('arguments/too-few', methodWord.span, `\`${methodWord.text}\` needs a URL.`, {
				hint: 'Write scheme, host and path, such as `http://example.com/path`.',
			});
		} else {
			const parsedUrl = parseRequestUrl(urlWord.text);
			if (isRequestUrl(parsedUrl)) url = parsedUrl;
			else this.#reportMistake('test/bad-url', urlWord.span, parsedUrl);
		}
		if (surplusWord) {
			const message = `\`${methodWord.text}\` takes only one URL.`;
			const hint = 'Write fields, body and client in a block: `{ header …; body …; from … }`.';
			this.#reportProblem('arguments/too-many', spanOfWords(args.slice(1)), message, { hint });
		}
		const step: StepDraft = {
			...emptyStep(span),
			method: methodWord.text,
			url: methodProblem || surplusWord ? undefined : url,
		};
		this.#step = step;
		for (const innerLine of line.block?.lines ?? []) {
			const word = innerLine.words[0]!;
			this.#rejectBlock(innerLine);
			if ((REQUEST_WORDS as readonly string[]).includes(word.text)) this.#readRequestPart(innerLine, step);
			else {
				const isMisplaced = (STEP_WORDS as readonly string[]).includes(word.text);
				this.#reportProblem('test/unknown', word.span, `\`${word.text}\` is not part of a request.`, {
					...(isMisplaced ? {} : didYouMean(word, REQUEST_WORDS)),
					hint: isMisplaced
						? 'Write it after the block of the request.'
						: `The parts of a request are ${formatNameList(REQUEST_WORDS)}.`,
				});
			}
		}
	}

	#readRequestPart(line: Line, step: StepDraft): void {
		const [word, ...args] = line.words as readonly [Word, ...Word[]];
		const [firstArg, secondArg] = args;
		switch (word.text) {
			case 'header': {
				if (!this.#checkCount(word, args, 2, 2, 'header <name> <value>')) return;
				const mistake = fieldMistake(firstArg!.text, secondArg!.text);
				if (mistake) this.#reportMistake('test/bad-field', firstArg!.span, mistake);
				else step.headers.push([firstArg!.text, secondArg!.text]);
				return;
			}
			case 'body':
				if (this.#checkOnce(word, step) && this.#checkCount(word, args, 1, 1, 'body <text>'))
					step.body = firstArg!.text;
				return;
			case 'from':
				if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'from <address>')) return;
				step.from = canonicalClientAddress(firstArg!.text);
				if (step.from !== undefined) return;
				this.#reportProblem('value/not-an-address', firstArg!.span, `\`${firstArg!.text}\` is not an IP address.`, {
					hint: 'Write an address such as 203.0.113.9 or 2001:db8::9.',
				});
				return;
			case 'protocol': {
				if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'protocol h1 | h2 | h3')) return;
				const protocol = parseRequestProtocol(firstArg!.text, step.url?.scheme);
				if (typeof protocol === 'string') step.protocol = protocol;
				else this.#reportMistake('test/bad-protocol', firstArg!.span, protocol);
				return;
			}
			case 'cookies':
				if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'cookies on | off')) return;
				if (firstArg!.text === 'on' || firstArg!.text === 'off') step.sendsCookies = firstArg!.text === 'on';
				else {
					this.#reportProblem('test/unknown', firstArg!.span, `\`${firstArg!.text}\` is neither \`on\` nor \`off\`.`, {
						hint: 'Cookies that earlier responses of the test have set are sent, unless the request says `cookies off`.',
					});
				}
				return;
			case 'sni': {
				if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'sni <name>')) return;
				const mistake = this.#requireTls(word, step) ? serverNameMistake(firstArg!.text) : undefined;
				if (mistake) this.#reportMistake('test/bad-server-name', firstArg!.span, mistake);
				else step.sni = firstArg!.text.toLowerCase();
				return;
			}
			case 'client_certificate': {
				if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 20, CERTIFICATE_USAGE)) return;
				if (!this.#requireTls(word, step)) return;
				const facts: CertificateFact[] = [];
				for (const { text, span } of args.slice(1)) {
					const fact = parseCertificateFact(text);
					if ('message' in fact) this.#reportMistake('test/bad-certificate', span, fact);
					else facts.push(fact);
				}
				const certificate = imaginedCertificate(firstArg!.text, facts);
				if ('message' in certificate) this.#reportMistake('test/bad-certificate', firstArg!.span, certificate);
				else step.certificate = certificate;
				return;
			}
			case 'at': {
				if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'at <time>')) return;
				step.at = parseClockTime(firstArg!.text);
				if (step.at !== undefined) return;
				this.#reportProblem('value/not-a-time', firstArg!.span, `\`${firstArg!.text}\` is not a time.`, {
					hint: 'Write a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31.',
				});
			}
		}
	}

	/** Reports a TLS property that is given for a request without TLS. Returns true if the request uses TLS. */
	#requireTls(word: Word, step: StepDraft): boolean {
		if (step.url?.scheme !== 'http') return true;
		this.#reportProblem('test/no-tls', word.span, `\`${word.text}\` needs a URL that begins with \`https://\`.`);
		return false;
	}

	#readUpstream(line: Line, args: readonly Word[], step: StepDraft): void {
		const word = line.words[0]!;
		const isBehavior = ({ text }: Word) => (UPSTREAM_BEHAVIORS as readonly string[]).includes(text);
		const [firstWord, secondWord] = args;
		const isNamed =
			firstWord && secondWord && !isBehavior(firstWord) && (isBehavior(secondWord) || /[.:]/.test(firstWord.text));
		const upstreamName = isNamed ? firstWord.text : undefined;
		const [behaviorWord, ...behaviorArgs] = upstreamName === undefined ? args : args.slice(1);
		if (!behaviorWord) {
			this.#reportProblem('arguments/too-few', word.span, '`upstream` needs a behavior.', {
				hint: `Usage: ${UPSTREAM_USAGE}`,
			});
			return;
		}
		const addAnswer = (answer: TestUpstream['answer']): void => {
			step.upstreams.push({ upstreamName, answer, span: spanOfWords(line.words) });
		};
		switch (behaviorWord.text) {
			case 'answers':
				this.#readAnswer(behaviorWord, behaviorArgs, addAnswer);
				return;
			case 'fails':
				if (this.#checkCount(behaviorWord, behaviorArgs, 0, 0, 'upstream fails'))
					addAnswer({ status: 502, body: '', unreachable: true });
				return;
			case 'times':
				if (behaviorArgs.length === 1 && behaviorArgs[0]!.text === 'out') {
					addAnswer({ status: 504, body: '', timesOut: true });
					return;
				}
		}
		this.#reportProblem(
			'test/unknown',
			behaviorWord.span,
			`\`${behaviorWord.text}\` is not a behavior of an upstream here.`,
			{
				...didYouMean(behaviorWord, UPSTREAM_BEHAVIORS),
				hint: `Usage: ${UPSTREAM_USAGE}`,
			},
		);
	}

	#readAnswer(behaviorWord: Word, args: readonly Word[], addAnswer: (answer: TestUpstream['answer']) => void): void {
		if (!this.#checkCount(behaviorWord, args, 1, 2, 'upstream answers <status> [<body>]')) return;
		const [statusWord, bodyWord] = args as readonly [Word, Word?];
		if (/^[2-5]\d\d$/.test(statusWord.text)) {
			addAnswer({ status: Number(statusWord.text), body: bodyWord?.text ?? '' });
			return;
		}
		const hint = 'Write three digits from 200 to 599.';
		this.#reportProblem('value/not-a-status', statusWord.span, `\`${statusWord.text}\` is not a final status.`, {
			hint,
		});
	}

	#readBusy(word: Word, args: readonly Word[], step: StepDraft): void {
		if (!this.#checkCount(word, args, 1, Number.POSITIVE_INFINITY, 'busy <zone>…')) return;
		step.busyZones.push(...args.map(({ text, span }) => ({ zone: text, span })));
	}

	#readRepeat(word: Word, args: readonly Word[], step: StepDraft): void {
		if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'repeat <n>')) return;
		const { text, span } = args[0]!;
		const repetitions = /^\d{1,9}$/.test(text) ? Number(text) : 0;
		if (repetitions >= 1 && repetitions <= MAX_REPETITIONS) {
			step.repetitions = repetitions;
			return;
		}
		const hint = `Write a number from 1 to ${MAX_REPETITIONS}.`;
		this.#reportProblem('value/out-of-range', span, `\`${text}\` is not how often a request can be sent.`, { hint });
	}

	#readAfter(word: Word, args: readonly Word[], step: StepDraft): void {
		if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'after <duration>')) return;
		const { text, span } = args[0]!;
		const pauseMs = parseDuration(text);
		if (pauseMs !== undefined && pauseMs >= 0 && pauseMs <= MAX_PAUSE_MS) {
			step.pauseMs = pauseMs;
			return;
		}
		const hint = 'Write a time such as 61s or 2h, of at most a year.';
		this.#reportProblem('value/not-a-duration', span, `\`${text}\` is not a time that can pass.`, { hint });
	}

	#readExpectation(line: Line, args: readonly Word[], step: StepDraft): void {
		step.hasExpectation = true;
		const [kindWord, ...valueWords] = args;
		const kindNames = Object.keys(EXPECTATIONS);
		if (!kindWord) {
			const hint = `Write ${formatNameList(kindNames, 'or')} after it.`;
			this.#reportProblem('arguments/too-few', line.words[0]!.span, '`expect` needs an expectation.', { hint });
			return;
		}
		const expectation = Object.hasOwn(EXPECTATIONS, kindWord.text) ? EXPECTATIONS[kindWord.text] : undefined;
		if (!expectation) {
			this.#reportProblem('test/unknown-expectation', kindWord.span, `\`${kindWord.text}\` is not an expectation.`, {
				...didYouMean(kindWord, kindNames),
				hint: `The expectations are ${formatNameList(kindNames)}.`,
			});
			return;
		}
		if (
			!this.#checkCount(
				kindWord,
				valueWords,
				expectation.minArguments,
				expectation.maxArguments,
				`expect ${expectation.usage}`,
			)
		)
			return;
		const check = expectation.lower(valueWords as [Word, ...Word[]], this.#reportProblem);
		if (check) step.expectations.push({ span: spanOfWords(line.words), check });
	}

	#endStep(): void {
		const step = this.#step;
		this.#step = undefined;
		if (!step?.url) return;
		const { url, span, method, headers, body, from, at, protocol, sni, certificate } = step;
		const { upstreams, busyZones, repetitions, pauseMs, sendsCookies, expectations } = step;
		const request = { method, url, headers, body, from, at, protocol, sni, certificate };
		this.#steps.push({
			request,
			span,
			upstreams,
			busyZones,
			repetitions,
			pauseMs,
			sendsCookies,
			expectations,
		});
		if (step.hasExpectation) return;
		this.#reportProblem('test/no-expectation', span, 'This request has no expectations.', {
			severity: 'warning',
			hint: 'Add a line such as `expect status 200`.',
		});
	}

	#checkOnce(word: Word, step: StepDraft): boolean {
		const earlierSpan = step.givenWords.get(word.text);
		if (!earlierSpan) {
			step.givenWords.set(word.text, word.span);
			return true;
		}
		this.#reportProblem('test/given-twice', word.span, `\`${word.text}\` is given more than once for one request.`, {
			related: [{ span: earlierSpan, message: 'first given here' }],
		});
		return false;
	}

	#checkCount(word: Word, args: readonly Word[], min: number, max: number, usage: string): boolean {
		if (args.length >= min && args.length <= max) return true;
		const isTooFew = args.length < min;
		const violatedLimit = isTooFew ? min : max;
		const boundText = min === max ? '' : isTooFew ? 'at least ' : 'at most ';
		const amountText =
			violatedLimit === 0 ? 'no argument' : `${boundText}${violatedLimit} argument${violatedLimit === 1 ? '' : 's'}`;
		const message = `\`${word.text}\` takes ${amountText}.`;
		const span = isTooFew ? word.span : spanOfWords(args.slice(max));
		this.#reportProblem(isTooFew ? 'arguments/too-few' : 'arguments/too-many', span, message, {
			hint: `Usage: ${usage}`,
		});
		return false;
	}

	#rejectBlock(line: Line): void {
		if (!line.block) return;
		const message = `\`${line.words[0]!.text}\` takes no block.`;
		this.#reportProblem('directive/unexpected-block', line.block.open, message);
	}

	#reportMistake(code: string, span: SourceSpan, { message, hint }: RequestMistake): void {
		this.#reportProblem(code, span, message, hint === undefined ? undefined : { hint });
	}
}

/** Returns an empty step, which replaces a request that is missing, so that the lines after it are still checked. */
function emptyStep(span: SourceSpan): StepDraft {
	return {
		span,
		method: '',
		url: undefined,
		headers: [],
		body: undefined,
		from: undefined,
		at: undefined,
		protocol: undefined,
		sni: undefined,
		certificate: undefined,
		sendsCookies: true,
		upstreams: [],
		busyZones: [],
		repetitions: 1,
		pauseMs: 0,
		expectations: [],
		hasExpectation: false,
		givenWords: new Map(),
	};
}

/** Reports whether a line is a request: its first word is in capitals, or is followed by a URL. */
function isRequestLine(word: Word, args: readonly Word[]): boolean {
	if (word.quote !== 'none') return false;
	if (/^[A-Z][A-Z0-9-]*$/.test(word.text)) return true;
	return args[0]?.text.includes('://') === true && !/^[a-z_]+$/.test(word.text);
}
