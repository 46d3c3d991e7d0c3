//! The accept loop: opens and shuts the door as the script says, and serves what comes in.
//!
//! While refusing, the port stays bound by a socket that does not listen, so that the system gives it to nobody else.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::Script;
use crate::connection;
use crate::ledger::Ledger;
use crate::reply::Reply;
use crate::request::Facts;
use crate::script::Doorway;

/// Connections served at once; more wait in the listener's queue.
const MAX_CONNECTIONS: usize = 20_000;
const BACKLOG: u32 = 1024;
/// How long answers may take to finish once the mock stops.
const GRACE: Duration = Duration::from_secs(1);
/// The wait before the next try to bind or accept, where the system would not.
const AGAIN: Duration = Duration::from_millis(10);

/// What the handle, the accept loop and the connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) ledger: Arc<Ledger>,
    playing: Mutex<Playing>,
}

#[derive(Debug)]
struct Playing {
    script: Script,
    since: Instant,
}

impl Shared {
    pub(crate) fn new(script: Script) -> Self {
        let playing = Playing {
            script,
            since: Instant::now(),
        };
        Self {
            ledger: Arc::default(),
            playing: Mutex::new(playing),
        }
    }

    /// Starts another script.
    pub(crate) fn play(&self, script: Script) {
        *self.playing() = Playing {
            script,
            since: Instant::now(),
        };
    }

    pub(crate) fn reply(&self, facts: &Facts) -> Option<Reply> {
        let mut playing = self.playing();
        let elapsed = playing.since.elapsed();
        playing.script.reply(elapsed, facts)
    }

    fn doorway(&self) -> Doorway {
        let playing = self.playing();
        playing.script.doorway(playing.since.elapsed())
    }

    fn next_change(&self) -> Option<Instant> {
        let playing = self.playing();
        let after = playing.script.next_change(playing.since.elapsed())?;
        playing.since.checked_add(after)
    }

    fn playing(&self) -> MutexGuard<'_, Playing> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The listening side of the port.
#[derive(Debug)]
pub(crate) struct Door {
    addr: SocketAddr,
    state: DoorState,
}

#[derive(Debug)]
enum DoorState {
    Open(TcpListener),
    Shut(TcpSocket),
    Unbound,
}

impl Door {
    pub(crate) fn bind(addr: SocketAddr) -> io::Result<Self> {
        let socket = bind(addr)?;
        Ok(Self {
            addr: socket.local_addr()?,
            state: DoorState::Shut(socket),
        })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn open(&mut self) -> io::Result<()> {
        self.state = match std::mem::replace(&mut self.state, DoorState::Unbound) {
            DoorState::Open(listener) => DoorState::Open(listener),
            DoorState::Shut(socket) => DoorState::Open(socket.listen(BACKLOG)?),
            DoorState::Unbound => DoorState::Open(bind(self.addr)?.listen(BACKLOG)?),
        };
        Ok(())
    }

    pub(crate) fn shut(&mut self) -> io::Result<()> {
        if !matches!(self.state, DoorState::Shut(_)) {
            self.state = DoorState::Unbound;
            self.state = DoorState::Shut(bind(self.addr)?);
        }
        Ok(())
    }

    fn swing(&mut self, doorway: Doorway) -> io::Result<()> {
        match doorway {
            Doorway::Refuse => self.shut(),
            Doorway::Accept | Doorway::Reset => self.open(),
        }
    }

    /// The next connection; never, while shut.
    async fn accept(&self) -> Option<TcpStream> {
        let DoorState::Open(listener) = &self.state else {
            return std::future::pending().await;
        };
        match listener.accept().await {
            Ok((stream, _)) => Some(stream),
            Err(_) => {
                sleep(AGAIN).await;
                None
            }
        }
    }
}

fn bind(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if addr.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    Ok(socket)
}

/// Serves until the other end of `news` is dropped. Each piece of news says that the script has changed and is answered when
/// the door stands accordingly.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut door: Door,
    mut news: mpsc::Receiver<oneshot::Sender<()>>,
) {
    let mut connections = JoinSet::new();
    let goodbye = watch::Sender::new(());
    loop {
        let doorway = shared.doorway();
        let mut wake = shared.next_change();
        if door.swing(doorway).is_err() {
            wake = Some(Instant::now() + AGAIN);
        }
        if doorway == Doorway::Refuse {
            goodbye.send_replace(());
        }
        tokio::select! {
            heard = news.recv() => match heard {
                Some(done) => settle(&shared, &mut door, &goodbye, done),
                None => break,
            },
            () = until(wake) => {}
            stream = door.accept(), if connections.len() < MAX_CONNECTIONS => {
                if let Some(stream) = stream {
                    admit(&shared, stream, &goodbye, &mut connections);
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(door);
    shared.ledger.stop();
    goodbye.send_replace(());
    // What has not finished by then is cut off when the set is dropped.
    let _ = timeout(GRACE, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}

/// Brings the door into line with a new script, then says so.
fn settle(
    shared: &Shared,
    door: &mut Door,
    goodbye: &watch::Sender<()>,
    done: oneshot::Sender<()>,
) {
    let doorway = shared.doorway();
    if door.swing(doorway).is_ok() && doorway == Doorway::Refuse {
        goodbye.send_replace(());
    }
    let _ = done.send(());
}

fn admit(
    shared: &Arc<Shared>,
    stream: TcpStream,
    goodbye: &watch::Sender<()>,
    connections: &mut JoinSet<()>,
) {
    shared.ledger.connected();
    match shared.doorway() {
        Doorway::Accept => {
            connections.spawn(connection::serve(
                Arc::clone(shared),
                stream,
                goodbye.subscribe(),
            ));
        }
        Doorway::Refuse | Doorway::Reset => {
            let _ = stream.set_zero_linger();
        }
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
