/** Sends the responses of `live` and `ready` to health probes. */
import type { Exchange } from '../../exchange/exchange.ts';

/** Answers a probe with JSON that no cache may store. */
export function answerProbe(x: Exchange, status: number, json: string, handler: 'live' | 'ready', step: number): void {
	const { response } = x;
	response.status = status;
	response.headers.set('Content-Type', 'application/json');
	response.headers.set('Cache-Control', 'no-store');
	response.body = `${json}\n`;
	x.markAnswered(handler, step);
}
