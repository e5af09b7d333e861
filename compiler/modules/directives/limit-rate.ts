/** `limit_rate`: limits the bytes per second at which a response is sent. */
import type { Step } from '../../document/document.ts';
import type { Exchange, TransferLimits } from '../../exchange/exchange.ts';
import { HttpError } from '../../exchange/http-error.ts';
import { parseSize } from '../../lower/context/values.ts';
import type { Word } from '../../syntax/ast.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';

export interface LimitRateStep extends Step {
	readonly handler: 'limit_rate';
	/** Maximum number of bytes per second, or a string with placeholders; 0 for no limit. */
	readonly rate: number | string;
	/** Number of bytes at the beginning of a response that are sent without limit. */
	readonly after?: number;
}

const USAGE = 'limit_rate [matcher] <size per second>|off [after <size>]';
const RATE_HINT = 'Write the bytes per second as a size from 1KiB to 100GiB, such as `500KiB`, or `off` for no limit.';

const MIN_BYTES_PER_SECOND = 1024;
const MAX_BYTES_PER_SECOND = 100 * 1024 ** 3;

/** Syntax: `limit_rate [matcher] <rate>|off [after <size>]`. */
export const limitRate = handlerDirective<LimitRateStep>({
	kind: 'handler',
	id: 'limit_rate',
	changesBodies: true,
	names: { configfile: ['limit_rate'], compatfile: [] },
	usage: USAGE,
	summary: 'Limits the bytes per second at which a response is sent.',
	documentation: [
		'Sends the body of a response with at most this many bytes per second. With `after`, the first bytes are sent as fast as the',
		'client takes them: pages and the beginning of a video arrive at once, and only long downloads are slow.',
		'',
		'Each response has its own limit. A client with several connections, or with several requests on one connection of HTTP/2 or',
		'HTTP/3, gets the rate for each of them: `limit_concurrent` limits how many it may have at a time, and the product of both',
		'limits is what the client can get.',
		'',
		'Several `limit_rate` do not add up: the last one that a request passes applies, and `off` lifts the limit. It applies to whatever',
		'answers, wherever `encode` and `cache` are written: the bytes of the body that are sent are counted, after compression and without',
		'fields and framing. Upgraded connections, such as WebSockets, are not limited.',
		'',
		'A burst is at most a tenth of a second of the rate, or 1 KiB if that is more: a response that was slower for a while cannot make',
		'up for it. A body is read only as fast as it is sent, so that a limited response occupies its upstream for longer. While `cache`',
		'stores a response, up to 8 MiB of it are read ahead, so that others do not wait for the client that is slow.',
		'',
		'Time that a response spends waiting for its rate does not count for the timeouts in `timeouts` and `servers`. After the grace',
		'period of a shutdown, limited responses are cut off like all others.',
		'',
		'The rate may contain placeholders, for example a variable of `map`. An empty value, `0` or `off` means no limit. Any other value',
		'that is not such a size causes an error 500.',
		'',
		'```',
		'limit_rate /downloads/* 500KiB after 1MiB',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	lower: ({ line, args }, cx) => {
		cx.noBlock(line);
		if (args.length === 2 && args[1]!.text !== 'after') {
			cx.oneOf(args[1]!, ['after'], 'word after the rate');
			return undefined;
		}
		if (!cx.count(line, args, 1, 3, USAGE)) return undefined;
		const rate = lowerRate(args[0]!, cx);
		const unlimitedBytes = args.length > 1 ? lowerAfter(args.slice(1), cx) : undefined;
		if (rate === undefined) return undefined;
		if (rate === 0 && unlimitedBytes !== undefined) {
			const message = '`off` means no limit, so there is nothing that could begin later.';
			cx.problem('error', 'limit-rate/after-without-limit', args[1]!.span, message);
			return undefined;
		}
		const step = {
			handler: 'limit_rate',
			rate,
			...(unlimitedBytes !== undefined && { after: unlimitedBytes }),
		} as const;
		return cx.origin<LimitRateStep>(step, line.span, { rate: args[0]!.span });
	},
	schema: {
		properties: {
			rate: {
				anyOf: [
					{ type: 'integer', minimum: MIN_BYTES_PER_SECOND, maximum: MAX_BYTES_PER_SECOND },
					{ type: 'string', minLength: 1 },
					{ const: 0 },
				],
				description: 'Maximum bytes per second, 0 for no limit; or a string with placeholders.',
			},
			after: { type: 'integer', minimum: 0, description: 'Number of bytes of a response that are not limited.' },
		},
		required: ['rate'],
	},
	compile: (step, cx, next) => {
		const { rate, after = 0 } = step;
		const limits = typeof rate === 'string' ? compileRate(rate, after, cx) : toLimits(rate, after);
		if (typeof limits === 'function') {
			return x => {
				x.setLimits(limits(x));
				return next(x);
			};
		}
		return x => {
			x.setLimits(limits);
			return next(x);
		};
	},
});

function lowerRate(word: Word, cx: LowerContext): number | string | undefined {
	if (word.text === 'off' || word.text === '0') return 0;
	if (word.text.includes('{')) return cx.template(word);
	const rate = cx.size(word);
	if (rate === undefined || isRateInRange(rate)) return rate;
	const message = `A rate of ${rate} bytes per second is out of range.`;
	cx.problem('error', 'value/out-of-range', word.span, message, { hint: RATE_HINT });
	return undefined;
}

function lowerAfter([keyword, sizeWord]: readonly Word[], cx: LowerContext): number | undefined {
	if (cx.oneOf(keyword!, ['after'], 'word after the rate') === undefined) return undefined;
	if (sizeWord !== undefined) return cx.size(sizeWord);
	const message = '`after` needs a size.';
	cx.problem('error', 'limit-rate/after-without-size', keyword!.span, message, { hint: `Usage: ${USAGE}` });
	return undefined;
}

function isRateInRange(rate: number): boolean {
	return rate >= MIN_BYTES_PER_SECOND && rate <= MAX_BYTES_PER_SECOND;
}

function toLimits(rate: number, unlimitedBytes: number): TransferLimits {
	return { maxWriteRate: rate, maxWriteRateAfter: unlimitedBytes };
}

function compileRate(
	rateText: string,
	unlimitedBytes: number,
	cx: CompileContext,
): TransferLimits | ((x: Exchange) => TransferLimits) {
	const template = cx.template(rateText, 'empty');
	if (template.constant !== undefined) {
		const rate = parseRate(template.constant);
		if (rate !== undefined) return toLimits(rate, unlimitedBytes);
		// An invalid literal is rejected now. The value of an environment variable may differ on the machine that runs the server, so
		// it is checked again for each request.
		if (!rateText.includes('{')) return cx.refuse(`\`${rateText}\` is not a rate.`, 'limit-rate/invalid', RATE_HINT);
	}
	return x => {
		const value = template.render(x);
		const rate = parseRate(value);
		if (rate === undefined) throw new HttpError(500, `limit_rate: \`${value}\` is not a rate`);
		return toLimits(rate, unlimitedBytes);
	};
}

function parseRate(text: string): number | undefined {
	if (text === '' || text === 'off') return 0;
	const rate = parseSize(text);
	return rate !== undefined && (rate === 0 || isRateInRange(rate)) ? rate : undefined;
}
