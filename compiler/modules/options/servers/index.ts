/** The registry of options inside `servers`, one line each. */

import type { ServerOption } from '../../contract/server-option.ts';
import { clientIpHeaders, trustedProxiesStrict, trustedProxiesUnix } from './client-ip.ts';
import { enableFullDuplex } from './enable-full-duplex.ts';
import { expectedDotHeaders, expectedUnderscoreHeaders } from './expected-headers.ts';
import { keepaliveCount, keepaliveIdle, keepaliveInterval } from './keepalive.ts';
import { limits } from './limits.ts';
import { listenerWrappers } from './listener-wrappers.ts';
import { logCredentials } from './log-credentials.ts';
import { maxHeaderSize } from './max-header-size.ts';
import { serverMetrics } from './metrics.ts';
import { name } from './name.ts';
import { protocols } from './protocols.ts';
import { quic } from './quic.ts';
import { earlyData, strictSniHost } from './strict-sni-host.ts';
import { timeouts } from './timeouts.ts';
import { trace } from './trace.ts';
import { trustedProxies } from './trusted-proxies.ts';

/** All options inside `servers`, in the order of the manual. */
export const serverOptions: readonly ServerOption[] = [
	name,
	trustedProxies,
	trustedProxiesStrict,
	trustedProxiesUnix,
	clientIpHeaders,
	protocols,
	timeouts,
	maxHeaderSize,
	limits,
	quic,
	keepaliveInterval,
	keepaliveIdle,
	keepaliveCount,
	listenerWrappers,
	expectedUnderscoreHeaders,
	expectedDotHeaders,
	enableFullDuplex,
	strictSniHost,
	earlyData,
	trace,
	logCredentials,
	serverMetrics,
];
