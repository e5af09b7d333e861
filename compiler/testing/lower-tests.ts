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

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
/** Words allowed in the block of a request. */
const REQUEST_WORDS = ['header', 'body', 'from', 'at', 'protocol', 'sni', 'client_certificate', 'cookies'] as const;
/** Words allowed on the lines after a request. */
export const STEP_WORDS = ['expect', 'upstream', 'busy', 'repeat', 'after', ...REQUEST_WORDS] as const;
/** Words for the behavior of an upstream. */
export const UPSTREAM_BEHAVIORS = ['answers', 'fails', 'times'] as const;
const UPSTREAM_USAGE = 'upstream [<name> | <address>] answers <status> [<body>] | fails | times out';

const MAX_REPEAT = 10_000;
/** Maximum pause after a step, in milliseconds: a year. */
const MAX_PAUSE_MS = 366 * 86_400_000;

/** Lowers the tests of a configuration. Tests with mistakes are omitted. */
export function lowerTests(blocks: readonly NamedBlock[], report: Report): TestCase[] {
	const problem: TestProblem = (code, span, message, more) =>
		report({ severity: 'error', ...more, code, span, message });
	const names = new Map<string, SourceSpan>();
	return blocks.flatMap(block => {
		const { text, span } = block.name;
		const earlier = names.get(text);
		if (earlier) {
			problem('test/defined-twice', span, `The test \`${text}\` is defined more than once.`, {
				related: [{ span: earlier, message: 'first defined here' }],
			});
		} else names.set(text, span);
		// All rows of a table share the lines of the test, so a mistake in these lines is reported only once.
		const problemOnce = withoutRepetitions(problem);
		return testRows(block, problemOnce).map(row => {
			const test = new TestReader(row.block, problemOnce).read();
			return row.span === span ? test : { ...test, row: row.span };
		});
	});
}

function withoutRepetitions(problem: TestProblem): TestProblem {
	const reported = new Set<string>();
	return (code, span, message, more) => {
		const key = JSON.stringify([code, span.start, span.end, message]);
		if (reported.has(key)) return;
		reported.add(key);
		problem(code, span, message, more);
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
	cookies: boolean;
	readonly upstreams: TestUpstream[];
	readonly busy: BusyZone[];
	repeat: number;
	pause: number;
	readonly expectations: Expectation[];
	/** True if the step has an `expect` line, even an invalid one. */
	hasExpectation: boolean;
	/** The places of the words given so far that may be given only once. */
	readonly givenWords: Map<string, SourceSpan>;
}

class TestReader {
	readonly #block: NamedBlock;
	readonly #problem: TestProblem;
	readonly #steps: TestStep[] = [];
	#step: StepDraft | undefined;

	constructor(block: NamedBlock, problem: TestProblem) {
		this.#block = block;
		this.#problem = problem;
	}

	read(): TestCase {
		const { name, lines } = this.#block;
		for (const line of lines) this.#readLine(line);
		if (!this.#step && lines.length === 0) {
			this.#problem('test/no-request', name.span, `The test \`${name.text}\` contains no request.`, {
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
			this.#problem('test/unexpected-word', span, '`else` is not allowed in a test.');
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
			this.#problem('test/before-request', word.span, `\`${word.text}\` comes before the first request.`, {
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
		const upper = word.text.toUpperCase();
		const isMethod = (METHODS as readonly string[]).includes(upper);
		this.#problem('test/unknown', word.span, `\`${word.text}\` is not allowed in a test.`, {
			...(isMethod
				? { ...suggestName(word, upper), label: `write \`${upper}\`` }
				: didYouMean(word, ['cases', ...STEP_WORDS, ...METHODS, ...Object.keys(EXPECTATIONS)])),
			hint: Object.hasOwn(EXPECTATIONS, word.text)
				? `Write \`expect ${word.text} …\`.`
				: 'A test contains requests (`GET http://example.com/`), `upstream answers …` and `expect …`.',
		});
	}

	#beginStep(line: Line, method: Word, args: readonly Word[]): void {
		this.#endStep();
		const [target, surplus] = args;
		const span = spanOfWords(line.words);
		let url: RequestUrl | undefined;
		const wrongMethod = methodMistake(method.text);
		if (wrongMethod) this.#reportMistake('test/bad-method', method.span, wrongMethod);
		if (!target) {
			this.#problem('arguments/too-few', method.span, `\`${method.text}\` needs a URL.`, {
				hint: 'Write scheme, host and path, such as `http://example.com/path`.',
			});
		} else {
			const parsed = parseRequestUrl(target.text);
			if (isRequestUrl(parsed)) url = parsed;
			else this.#reportMistake('test/bad-url', target.span, parsed);
		}
		if (surplus) {
			const message = `\`${method.text}\` takes only one URL.`;
			const hint = 'Write fields, body and client in a block: `{ header …; body …; from … }`.';
			this.#problem('arguments/too-many', spanOfWords(args.slice(1)), message, { hint });
		}
		const step: StepDraft = { ...emptyStep(span), method: method.text, url: wrongMethod || surplus ? undefined : url };
		this.#step = step;
		for (const inner of line.block?.lines ?? []) {
			const word = inner.words[0]!;
			this.#rejectBlock(inner);
			if ((REQUEST_WORDS as readonly string[]).includes(word.text)) this.#readRequestPart(inner, step);
			else {
				const isMisplaced = (STEP_WORDS as readonly string[]).includes(word.text);
				this.#problem('test/unknown', word.span, `\`${word.text}\` is not part of a request.`, {
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
		const [first, second] = args;
		switch (word.text) {
			case 'header': {
				if (!this.#checkCount(word, args, 2, 2, 'header <name> <value>')) return;
				const mistake = fieldMistake(first!.text, second!.text);
				if (mistake) this.#reportMistake('test/bad-field', first!.span, mistake);
				else step.headers.push([first!.text, second!.text]);
				return;
			}
			case 'body':
				if (this.#checkOnce(word, step) && this.#checkCount(word, args, 1, 1, 'body <text>')) step.body = first!.text;
				return;
			case 'from':
				if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'from <address>')) return;
				step.from = canonicalClientAddress(first!.text);
				if (step.from !== undefined) return;
				this.#problem('value/not-an-address', first!.span, `\`${first!.text}\` is not an IP address.`, {
					hint: 'Write an address such as 203.0.113.9 or 2001:db8::9.',
				});
				return;
			case 'protocol': {
				if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'protocol h1 | h2 | h3')) return;
				const protocol = parseRequestProtocol(first!.text, step.url?.scheme);
				if (typeof protocol === 'string') step.protocol = protocol;
				else this.#reportMistake('test/bad-protocol', first!.span, protocol);
				return;
			}
			case 'cookies':
				if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'cookies on | off')) return;
				if (first!.text === 'on' || first!.text === 'off') step.cookies = first!.text === 'on';
				else {
					this.#problem('test/unknown', first!.span, `\`${first!.text}\` is neither \`on\` nor \`off\`.`, {
						hint: 'Cookies that earlier responses of the test have set are sent, unless the request says `cookies off`.',
					});
				}
				return;
			case 'sni': {
				if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'sni <name>')) return;
				const mistake = this.#requireTls(word, step) ? serverNameMistake(first!.text) : undefined;
				if (mistake) this.#reportMistake('test/bad-server-name', first!.span, mistake);
				else step.sni = first!.text.toLowerCase();
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
				const certificate = imaginedCertificate(first!.text, facts);
				if ('message' in certificate) this.#reportMistake('test/bad-certificate', first!.span, certificate);
				else step.certificate = certificate;
				return;
			}
			case 'at': {
				if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'at <time>')) return;
				step.at = parseClockTime(first!.text);
				if (step.at !== undefined) return;
				this.#problem('value/not-a-time', first!.span, `\`${first!.text}\` is not a time.`, {
					hint: 'Write a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31.',
				});
			}
		}
	}

	/** Reports a TLS property that is given for a request without TLS. Returns true if the request uses TLS. */
	#requireTls(word: Word, step: StepDraft): boolean {
		if (step.url?.scheme !== 'http') return true;
		this.#problem('test/no-tls', word.span, `\`${word.text}\` needs a URL that begins with \`https://\`.`);
		return false;
	}

	#readUpstream(line: Line, args: readonly Word[], step: StepDraft): void {
		const word = line.words[0]!;
		const isBehavior = ({ text }: Word) => (UPSTREAM_BEHAVIORS as readonly string[]).includes(text);
		const [first, second] = args;
		const isNamed = first && second && !isBehavior(first) && (isBehavior(second) || /[.:]/.test(first.text));
		const upstreamName = isNamed ? first.text : undefined;
		const [behavior, ...behaviorArgs] = upstreamName === undefined ? args : args.slice(1);
		if (!behavior) {
			this.#problem('arguments/too-few', word.span, '`upstream` needs a behavior.', {
				hint: `Usage: ${UPSTREAM_USAGE}`,
			});
			return;
		}
		const addAnswer = (answer: TestUpstream['answer']): void => {
			step.upstreams.push({ upstreamName, answer, span: spanOfWords(line.words) });
		};
		switch (behavior.text) {
			case 'answers':
				this.#readAnswer(behavior, behaviorArgs, addAnswer);
				return;
			case 'fails':
				if (this.#checkCount(behavior, behaviorArgs, 0, 0, 'upstream fails'))
					addAnswer({ status: 502, body: '', unreachable: true });
				return;
			case 'times':
				if (behaviorArgs.length === 1 && behaviorArgs[0]!.text === 'out') {
					addAnswer({ status: 504, body: '', timesOut: true });
					return;
				}
		}
		this.#problem('test/unknown', behavior.span, `\`${behavior.text}\` is not a behavior of an upstream here.`, {
			...didYouMean(behavior, UPSTREAM_BEHAVIORS),
			hint: `Usage: ${UPSTREAM_USAGE}`,
		});
	}

	#readAnswer(answers: Word, args: readonly Word[], addAnswer: (answer: TestUpstream['answer']) => void): void {
		if (!this.#checkCount(answers, args, 1, 2, 'upstream answers <status> [<body>]')) return;
		const [status, body] = args as readonly [Word, Word?];
		if (/^[2-5]\d\d$/.test(status.text)) {
			addAnswer({ status: Number(status.text), body: body?.text ?? '' });
			return;
		}
		const hint = 'Write three digits from 200 to 599.';
		this.#problem('value/not-a-status', status.span, `\`${status.text}\` is not a final status.`, { hint });
	}

	#readBusy(word: Word, args: readonly Word[], step: StepDraft): void {
		if (!this.#checkCount(word, args, 1, Number.POSITIVE_INFINITY, 'busy <zone>…')) return;
		step.busy.push(...args.map(({ text, span }) => ({ zone: text, span })));
	}

	#readRepeat(word: Word, args: readonly Word[], step: StepDraft): void {
		if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'repeat <n>')) return;
		const { text, span } = args[0]!;
		const times = /^\d{1,9}$/.test(text) ? Number(text) : 0;
		if (times >= 1 && times <= MAX_REPEAT) {
			step.repeat = times;
			return;
		}
		const hint = `Write a number from 1 to ${MAX_REPEAT}.`;
		this.#problem('value/out-of-range', span, `\`${text}\` is not how often a request can be sent.`, { hint });
	}

	#readAfter(word: Word, args: readonly Word[], step: StepDraft): void {
		if (!this.#checkOnce(word, step) || !this.#checkCount(word, args, 1, 1, 'after <duration>')) return;
		const { text, span } = args[0]!;
		const pause = parseDuration(text);
		if (pause !== undefined && pause >= 0 && pause <= MAX_PAUSE_MS) {
			step.pause = pause;
			return;
		}
		const hint = 'Write a time such as 61s or 2h, of at most a year.';
		this.#problem('value/not-a-duration', span, `\`${text}\` is not a time that can pass.`, { hint });
	}

	#readExpectation(line: Line, args: readonly Word[], step: StepDraft): void {
		step.hasExpectation = true;
		const [kindWord, ...values] = args;
		const words = Object.keys(EXPECTATIONS);
		if (!kindWord) {
			const hint = `Write ${formatNameList(words, 'or')} after it.`;
			this.#problem('arguments/too-few', line.words[0]!.span, '`expect` needs an expectation.', { hint });
			return;
		}
		const expectation = Object.hasOwn(EXPECTATIONS, kindWord.text) ? EXPECTATIONS[kindWord.text] : undefined;
		if (!expectation) {
			this.#problem('test/unknown-expectation', kindWord.span, `\`${kindWord.text}\` is not an expectation.`, {
				...didYouMean(kindWord, words),
				hint: `The expectations are ${formatNameList(words)}.`,
			});
			return;
		}
		if (!this.#checkCount(kindWord, values, expectation.min, expectation.max, `expect ${expectation.usage}`)) return;
		const check = expectation.lower(values as [Word, ...Word[]], this.#problem);
		if (check) step.expectations.push({ span: spanOfWords(line.words), check });
	}

	#endStep(): void {
		const step = this.#step;
		this.#step = undefined;
		if (!step?.url) return;
		const { url, span, method, headers, body, from, at, protocol, sni, certificate } = step;
		const { upstreams, busy, repeat, pause, cookies, expectations } = step;
		const request = { method, url, headers, body, from, at, protocol, sni, certificate };
		this.#steps.push({
			request,
			span,
			upstreams,
			busy,
			repetitions: repeat,
			pauseMs: pause,
			sendsCookies: cookies,
			expectations,
		});
		if (step.hasExpectation) return;
		this.#problem('test/no-expectation', span, 'This request has no expectations.', {
			severity: 'warning',
			hint: 'Add a line such as `expect status 200`.',
		});
	}

	#checkOnce(word: Word, step: StepDraft): boolean {
		const earlier = step.givenWords.get(word.text);
		if (!earlier) {
			step.givenWords.set(word.text, word.span);
			return true;
		}
		this.#problem('test/given-twice', word.span, `\`${word.text}\` is given more than once for one request.`, {
			related: [{ span: earlier, message: 'first given here' }],
		});
		return false;
	}

	#checkCount(word: Word, args: readonly Word[], min: number, max: number, usage: string): boolean {
		if (args.length >= min && args.length <= max) return true;
		const tooFew = args.length < min;
		const limit = tooFew ? min : max;
		const bound = min === max ? '' : tooFew ? 'at least ' : 'at most ';
		const amount = limit === 0 ? 'no argument' : `${bound}${limit} argument${limit === 1 ? '' : 's'}`;
		const message = `\`${word.text}\` takes ${amount}.`;
		const span = tooFew ? word.span : spanOfWords(args.slice(max));
		this.#problem(tooFew ? 'arguments/too-few' : 'arguments/too-many', span, message, { hint: `Usage: ${usage}` });
		return false;
	}

	#rejectBlock(line: Line): void {
		if (!line.block) return;
		const message = `\`${line.words[0]!.text}\` takes no block.`;
		this.#problem('directive/unexpected-block', line.block.open, message);
	}

	#reportMistake(code: string, span: SourceSpan, { message, hint }: RequestMistake): void {
		this.#problem(code, span, message, hint === undefined ? undefined : { hint });
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
		cookies: true,
		upstreams: [],
		busy: [],
		repeat: 1,
		pause: 0,
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
