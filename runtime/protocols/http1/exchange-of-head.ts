/** Creates the exchange for a request head that has just been parsed. */
import {
	Exchange,
	type ExchangeTransport,
	type ProtocolName,
	type ReceivedRequestLine,
	Request,
} from '../../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import type { Http1Engine } from './engine.ts';
import type { RequestBody } from './request-body.ts';
import { SERVER_NAME } from './response-head.ts';
import type { SocketInfo } from './socket-info.ts';

/**
 * Creates the exchange for the head in the engine's parser. `host` is the host of its authority. The exchange starts
 * at `engine.now`.
 */
export function createExchangeFromHead(
	engine: Http1Engine,
	info: SocketInfo,
	host: string,
	body: RequestBody | undefined,
	transport: ExchangeTransport,
): Exchange {
	const { parser } = engine;
	const { method, path, query, authority } = parser;
	const received: ReceivedRequestLine = { method, path, query, authority };
	const request = new Request(received, info.scheme, host, new HeaderList(parser.fields.items), body ?? null);
	const protocol: ProtocolName = parser.minor === 1 ? 'HTTP/1.1' : 'HTTP/1.0';
	const x = new Exchange(protocol, info, received, request, transport, engine.now);
	x.response.headers.add('Server', SERVER_NAME);
	return x;
}
