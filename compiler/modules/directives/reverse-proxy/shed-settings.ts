/** The sub-directive `shed` of an upstream pool: its settings, lowering and schema, and the error for refused requests. */
import type { Schema } from '../../../document/schema-type.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import { parsePercentage, parseSingleInteger, parseSingleWord } from '../../words/single-value.ts';

/**
 * The adaptive limit on the number of requests that wait for a response head at the same time. Each upstream has a limit of its own,
 * so that the requests a slow upstream cannot take go to the others. A limit of the whole pool would have to rely on an average
 * latency, which says nothing about any single upstream.
 */
export interface ShedSettings {
	/** Minimum of the limit; default 4. The baseline of the latency is measured with this many requests at a time. */
	readonly min?: number;
	/** Maximum of the limit; default 1000. */
	readonly max?: number;
	/** The first limit of an upstream, before its latency has been measured; default 100. */
	readonly initial?: number;
	/** Fraction by which the latency may exceed its baseline before the limit falls; default 0.5. */
	readonly tolerance?: number;
	/** Status of refused requests; default 503. */
	readonly status?: number;
}

export const DEFAULT_SHED_SETTINGS = { min: 4, max: 1000, initial: 100, tolerance: 0.5, status: 503 } as const;

const MAX_REQUESTS = 1_000_000;
const MAX_TOLERANCE = 10;
const STATUSES = ['503', '429'] as const;
/** Seconds after which a refused client may try again. A short time, because the duration of an overload is unknown. */
const RETRY_AFTER_SECONDS = '1';

const requestsSchema = (defaultValue: number, description: string): Schema => ({
	type: 'integer',
	minimum: 1,
	maximum: MAX_REQUESTS,
	default: defaultValue,
	description: `${description}; default ${defaultValue}.`,
});

export const SHED_SCHEMA: Schema = {
	type: 'object',
	description:
		'A limit of concurrent requests for each upstream, which falls when its latency rises. If all available upstreams are at their limits, requests are refused.',
	properties: {
		min: requestsSchema(DEFAULT_SHED_SETTINGS.min, 'Minimum of the limit'),
		max: requestsSchema(DEFAULT_SHED_SETTINGS.max, 'Maximum of the limit'),
		initial: requestsSchema(DEFAULT_SHED_SETTINGS.initial, 'The limit at the beginning'),
		tolerance: {
			type: 'number',
			minimum: 0,
			maximum: MAX_TOLERANCE,
			default: DEFAULT_SHED_SETTINGS.tolerance,
			description: 'Share by which the latency may exceed its baseline before the limit falls; default 0.5.',
		},
		status: {
			enum: STATUSES.map(Number),
			default: DEFAULT_SHED_SETTINGS.status,
			description: 'Status of refused requests; default 503.',
		},
	},
	additionalProperties: false,
};

/** Lowers `shed [{ … }]`. Returns undefined after a mistake in its first line. */
export function lowerShed(args: readonly Word[], line: Line, cx: LowerContext): ShedSettings | undefined {
	if (!cx.count(line, args, 0, 0, 'shed [{ min <n>; max <n>; initial <n>; tolerance <percent>; status 503|429 }]'))
		return undefined;
	const shed: { -readonly [K in keyof ShedSettings]: ShedSettings[K] } = {};
	const countHandler = (key: 'min' | 'max' | 'initial') => (words: readonly Word[], innerLine: Line) => {
		const count = parseSingleInteger(words, innerLine, cx, 1, MAX_REQUESTS);
		if (count !== undefined) shed[key] = count;
	};
	cx.subdirectives(
		line.block,
		{
			min: countHandler('min'),
			max: countHandler('max'),
			initial: countHandler('initial'),
			tolerance: (words, innerLine) => {
				const word = parseSingleWord(words, innerLine, cx, 'percent');
				const tolerance = word && parsePercentage(word, cx);
				if (tolerance !== undefined) shed.tolerance = tolerance;
			},
			status: (words, innerLine) => {
				const word = parseSingleWord(words, innerLine, cx, 'status');
				const status = word && cx.oneOf(word, STATUSES, 'status of refused requests');
				if (status !== undefined) shed.status = Number(status);
			},
		},
		'shed',
	);
	checkBounds(shed, line, cx);
	return shed;
}

function checkBounds(shed: ShedSettings, line: Line, cx: LowerContext): void {
	const { min = DEFAULT_SHED_SETTINGS.min, max = DEFAULT_SHED_SETTINGS.max, initial } = shed;
	const reportProblem = (message: string, hint: string): void =>
		cx.problem('error', 'shed/bounds', line.words[0]!.span, message, { hint });
	if (min > max)
		reportProblem(`The minimum of the limit, ${min}, is above its maximum, ${max}.`, 'Raise `max`, or lower `min`.');
	else if (initial !== undefined && (initial < min || initial > max))
		reportProblem(
			`\`initial ${initial}\` is not between the bounds, ${min} and ${max}.`,
			'Change `initial`, `min` or `max`.',
		);
}

/** Returns the bounds of the limit, with the defaults filled in. */
export function shedBounds({ min = DEFAULT_SHED_SETTINGS.min, max = DEFAULT_SHED_SETTINGS.max }: ShedSettings): {
	readonly min: number;
	readonly max: number;
} {
	return { min, max };
}

/** Returns the error for a request that is refused because the upstreams are at their limits. */
export function shedError({ status = DEFAULT_SHED_SETTINGS.status }: ShedSettings): HttpError {
	return new HttpError(status, 'The upstreams are overloaded.', { headers: [['Retry-After', RETRY_AFTER_SECONDS]] });
}
