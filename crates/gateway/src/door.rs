//! The two listeners' sockets.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket};

use crate::server::StartError;

/// Most of an answer that waits in the system for its caller, in which a caller's slowness would be hidden for as long as it fills.
const SEND_BUFFER: u32 = 64 << 10;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// A caller of whom nothing was heard for this long is asked whether he is still there; without a sign of life he is gone
/// a quarter of a minute later.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

/// A listener at this key's address.
pub(crate) fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, StartError> {
    listen(address).map_err(|cause| StartError::Listen {
        key,
        address,
        cause,
    })
}

/// Where it listens, which is known of a port that was to be chosen as well.
pub(crate) fn address(key: &'static str, listener: &TcpListener) -> Result<SocketAddr, StartError> {
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    listener.local_addr().map_err(|cause| StartError::Listen {
        key,
        address: unknown,
        cause,
    })
}

/// A listener whose connections have small buffers, send at once, and are asked for signs of life: they have from it what it
/// has. Set on each, it would cost every caller five calls of the system before his request is read.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // Or a gateway could not come back to an address on which connections of the last one are still dying.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    // Without it small events would wait for one another; a socket that refuses an option still works.
    drop(socket.set_nodelay(true));
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    drop(SockRef::from(&socket).set_tcp_keepalive(&keepalive));
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn whoever_is_accepted_has_what_the_listener_has() {
        let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let _caller = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        assert!(accepted.nodelay().unwrap());
        let socket = SockRef::from(&accepted);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE_INTERVAL);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE_RETRIES);
        // The system doubles what it is asked for, for its own books.
        assert!(socket.send_buffer_size().unwrap() <= 2 * SEND_BUFFER as usize);
    }
}
