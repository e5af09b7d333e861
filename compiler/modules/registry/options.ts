/** The registry of global options, one line each. */

import type { GlobalOption } from '../contract/option.ts';
import { cacheOption } from '../directives/cache/cache-option.ts';
import { admin } from '../options/admin.ts';
import { cluster } from '../options/cluster.ts';
import { defaultBind } from '../options/default-bind.ts';
import { log } from '../options/log.ts';
import { metrics } from '../options/metrics.ts';
import { persistConfig } from '../options/persist-config.ts';
import { pki } from '../options/pki.ts';
import { httpPort, httpsPort } from '../options/ports.ts';
import { debug, gracePeriod, io, shutdownDelay, threads } from '../options/process.ts';
import { clientIpSettings } from '../options/servers/client-ip.ts';
import { trustedProxiesSetting } from '../options/servers/trusted-proxies.ts';
import { servers } from '../options/servers.ts';
import { storage, storageCheck, storageCleanInterval } from '../options/storage.ts';
import { autoHttps, defaultSni, fallbackSni, localCerts, skipInstallTrust } from '../options/tls/automatic-https.ts';
import {
	acmeCa,
	acmeCaRoot,
	acmeDns,
	acmeEab,
	certIssuer,
	certLifetime,
	dns,
	email,
	keyType,
	preferredChains,
	renewalWindowRatio,
	renewInterval,
	tlsResolvers,
} from '../options/tls/issuance.ts';
import { ocspInterval, ocspStapling, onDemandTls } from '../options/tls/ocsp.ts';

/** All global options. Their order only determines the order in the documentation and in the output of `svc schema`. */
export const options: readonly GlobalOption[] = [
	acmeCa,
	acmeCaRoot,
	acmeDns,
	acmeEab,
	autoHttps,
	certIssuer,
	certLifetime,
	defaultSni,
	dns,
	email,
	fallbackSni,
	keyType,
	localCerts,
	ocspInterval,
	ocspStapling,
	onDemandTls,
	preferredChains,
	renewInterval,
	renewalWindowRatio,
	skipInstallTrust,
	tlsResolvers,
	admin,
	cacheOption,
	cluster,
	debug,
	defaultBind,
	gracePeriod,
	httpPort,
	httpsPort,
	io,
	log,
	metrics,
	persistConfig,
	pki,
	servers,
	shutdownDelay,
	storage,
	storageCheck,
	storageCleanInterval,
	threads,
	trustedProxiesSetting,
	...clientIpSettings,
];
